"""The private server: shared by whoever uses its path, stopped by the last, never in the way of the next."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from symfonic_pg.memory.errors import MemoryUnavailable, SymfonicError
from symfonic_pg.postgres import embedded
from symfonic_pg.postgres.embedded import EmbeddedServer
from tests.conftest import server_binaries

ROOT = Path(__file__).parents[2]
# Says "up" once the server is up, and leaves it in an orderly way when its input ends.
USER = """
import sys
from pathlib import Path
from symfonic_pg.postgres.embedded import EmbeddedServer
with EmbeddedServer(sys.argv[1], binaries=Path(sys.argv[2]), settings={"fsync": "off"}) as server:
    print(server.dsn, flush=True)
    sys.stdin.read()
"""


def make(path: Path) -> EmbeddedServer:
    # Unlike the other tests' server this one has to keep what was committed when it is killed.
    return EmbeddedServer(path, binaries=server_binaries(), settings={"fsync": "off"})


def ask(dsn: str, query: str) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def postmaster(path: Path) -> int | None:
    file = path / "data" / "postmaster.pid"
    return int(file.read_text().split()[0]) if file.exists() else None


def user_process(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", USER, str(path), str(server_binaries())],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def leave(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.fixture
def path(server_home: Path) -> Iterator[Path]:
    """A path for a server, which is stopped whatever the test did to it."""
    home = server_home / "memories"
    yield home
    if postmaster(home) is not None:
        make(home).start().stop()


def test_data_survive_a_restart(path: Path) -> None:
    with make(path) as server:
        ask(server.dsn, "CREATE TABLE kept AS SELECT 7 AS n")
    assert postmaster(path) is None
    with make(path) as server:
        assert ask(server.dsn, "SELECT n FROM kept") == 7


def test_pgvector_is_there(path: Path) -> None:
    with make(path) as server:
        ask(server.dsn, "CREATE EXTENSION vector")
        assert ask(server.dsn, "SELECT '[1,2]'::halfvec(2)::text") == "[1,2]"


def test_only_a_socket_listens_and_only_its_owner_may_open_it(path: Path) -> None:
    with make(path) as server:
        assert ask(server.dsn, "SHOW listen_addresses") == ""
        assert ask(server.dsn, "SHOW server_encoding") == "UTF8"
        directory = Path(str(ask(server.dsn, "SHOW unix_socket_directories")))
        assert directory.stat().st_mode & 0o777 == 0o700
        assert server.dsn.startswith("postgresql://")


def test_the_last_one_out_stops_it(path: Path) -> None:
    other = user_process(path)
    dsn = first_line(other)
    with make(path) as server:
        assert server.dsn == dsn
    assert ask(dsn, "SELECT 1") == 1
    leave(other)
    assert postmaster(path) is None


def test_two_users_in_one_process(path: Path) -> None:
    first, second = make(path).start(), make(path).start()
    first.stop()
    assert ask(second.dsn, "SELECT 1") == 1
    second.stop()
    assert postmaster(path) is None


def test_processes_that_start_at_once_share_one_server(path: Path) -> None:
    others = [user_process(path) for _ in range(3)]
    assert len({first_line(other) for other in others}) == 1
    for other in others:
        leave(other)
    assert postmaster(path) is None


def test_a_killed_user_does_not_block_the_next_start_nor_the_stop(path: Path) -> None:
    killed = user_process(path)
    dsn = first_line(killed)
    ask(dsn, "CREATE TABLE kept AS SELECT 7 AS n")
    killed.kill()
    killed.communicate()
    with make(path) as server:
        assert ask(server.dsn, "SELECT n FROM kept") == 7
    assert postmaster(path) is None


def test_a_killed_server_is_started_again(path: Path) -> None:
    with make(path) as server:
        ask(server.dsn, "CREATE TABLE kept AS SELECT 7 AS n")
        killed = postmaster(path)
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        with make(path) as again:
            assert ask(again.dsn, "SELECT n FROM kept") == 7
            assert postmaster(path) != killed


def test_a_process_id_that_lives_on_in_another_program_is_no_server(path: Path) -> None:
    with make(path):
        remains = (path / "data" / "postmaster.pid").read_text()
    lines = remains.splitlines()
    lines[0] = str(os.getppid())
    (path / "data" / "postmaster.pid").write_text("\n".join(lines))
    with make(path) as server:
        assert ask(server.dsn, "SELECT 1") == 1


def test_a_start_that_was_killed_halfway_leaves_nothing_in_the_way(path: Path) -> None:
    (path / "data.unfinished" / "base").mkdir(parents=True)
    with make(path) as server:
        assert ask(server.dsn, "SELECT 1") == 1


@pytest.mark.parametrize("name", ["with space, 100% 'quoted'", "ünïcode", "long" * 30, "a,b"])
def test_any_path_will_do(server_home: Path, name: str) -> None:
    with make(server_home / name) as server:
        assert ask(server.dsn, "SELECT 1") == 1
        sockets = Path(str(ask(server.dsn, "SHOW unix_socket_directories")))
    assert not list(sockets.glob("*"))
    assert sockets.is_relative_to(server_home) or not sockets.exists()


def test_a_folder_with_other_things_in_the_datas_place_is_refused(path: Path) -> None:
    (path / "data").mkdir(parents=True)
    (path / "data" / "letter.txt").write_text("mine")
    with pytest.raises(SymfonicError, match="choose another path"):
        make(path).start()
    assert (path / "data" / "letter.txt").read_text() == "mine"


def test_data_of_another_major_version_are_left_alone(path: Path) -> None:
    with make(path):
        pass
    (path / "data" / "PG_VERSION").write_text("13\n")
    with pytest.raises(SymfonicError, match="written by PostgreSQL 13"):
        make(path).start()


def test_a_server_that_cannot_start_says_why(path: Path) -> None:
    broken = EmbeddedServer(path, binaries=server_binaries(), settings={"shared_buffers": "wrong"})
    with pytest.raises(MemoryUnavailable, match="shared_buffers"):
        broken.start()
    with make(path) as server:
        assert ask(server.dsn, "SELECT 1") == 1


def test_before_the_start_and_after_the_stop_there_is_no_address(path: Path) -> None:
    server = make(path)
    with pytest.raises(MemoryUnavailable, match="not started"):
        _ = server.dsn
    server.start().start()
    server.stop()
    server.stop()
    with pytest.raises(MemoryUnavailable, match="not started"):
        _ = server.dsn


def test_without_the_wheel_the_error_names_the_extra(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "find_spec", lambda name: None)
    with pytest.raises(SymfonicError, match=r"symfonic-pg\[embedded\]"):
        EmbeddedServer(path).start()
    assert not path.exists()


def test_a_process_that_ends_without_stopping_takes_the_server_with_it(path: Path) -> None:
    code = USER.replace("with Embedded", "server = Embedded").replace(") as server:", ").start()\nif True:")
    subprocess.run(
        [sys.executable, "-c", code, str(path), str(server_binaries())],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert postmaster(path) is None


def test_a_forked_child_that_ends_leaves_the_server_to_its_parent(path: Path) -> None:
    code = USER.replace(
        "    print(", "    import os\n    pid = os.fork() or sys.exit()\n    os.wait()\n    print("
    )
    user = subprocess.Popen(
        [sys.executable, "-c", code, str(path), str(server_binaries())],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert ask(first_line(user), "SELECT 1") == 1
    leave(user)
    assert postmaster(path) is None


def test_a_place_that_cannot_be_written_is_refused(server_home: Path) -> None:
    (server_home / "file").write_text("")
    with pytest.raises(SymfonicError, match="cannot live under"):
        make(server_home / "file").start()


async def test_from_async_code(path: Path) -> None:
    async with make(path) as server:
        assert await asyncio.to_thread(ask, server.dsn, "SELECT 1") == 1
    assert postmaster(path) is None


async def test_a_cancelled_start_is_undone(path: Path) -> None:
    server = make(path)
    task = asyncio.create_task(server.start_async())
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert postmaster(path) is None


async def test_starting_does_not_hold_up_the_event_loop(path: Path) -> None:
    task = asyncio.create_task(make(path).start_async())
    longest, last = 0.0, time.monotonic()
    while not task.done():
        await asyncio.sleep(0.01)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    await (await task).stop_async()
    assert longest < 0.3
