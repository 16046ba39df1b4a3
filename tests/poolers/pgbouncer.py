"""PgBouncer before the tests' server, with as many server connections as it takes to mix clients up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

# The first version that carries prepared statements from one server connection to another.
CARRIES_STATEMENTS = (1, 21)
PORT = 6432


def pgbouncer_program() -> str:
    """The installed program; without one the test is skipped."""
    # Debian puts it where only root's path leads.
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    return found


def pgbouncer_version() -> tuple[int, ...]:
    """The version of the installed program, such as (1, 18, 0)."""
    printed = subprocess.check_output([pgbouncer_program(), "--version"], text=True)
    numbers = re.search(r"PgBouncer (\d+(?:\.\d+)*)", printed)
    assert numbers is not None, printed
    return tuple(map(int, numbers[1].split(".")))


@contextmanager
def pooled(server: str, home: Path, **settings: object) -> Iterator[str]:
    """The DSN of a PgBouncer in transaction mode before `server`; `settings` are further ones of its own.

    Every transaction goes to the server connection that was idle longest: what one leaves in its session is
    not there for the next.
    """
    address = conninfo_to_dict(server)
    user = str(address.get("user") or "postgres")
    configuration = _configuration(
        address,
        home,
        {
            "listen_port": PORT,
            "unix_socket_dir": home,
            "auth_type": "trust",
            "auth_file": home / "users",
            "pool_mode": "transaction",
            "server_round_robin": 1,
            "default_pool_size": 8,
            "max_client_conn": 200,
            **settings,
        },
    )
    (home / "pgbouncer.ini").write_text(configuration)
    (home / "users").write_text(f'"{user}" "{address.get("password") or ""}"\n')
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [pgbouncer_program(), "--quiet", home / "pgbouncer.ini"],
            stdout=log, stderr=log, cwd="/", **_identity(home, str(address.get("host") or "")),
        )  # fmt: skip
    try:
        dsn = f"postgresql://{user}@/{address.get('dbname') or 'postgres'}?host={home}&port={PORT}"
        _wait(dsn, process, home / "log")
        yield dsn
    finally:
        process.terminate()
        process.wait(10)


def spread(dsn: str, sessions: int = 3) -> str:
    """Make PgBouncer hold so many server connections of one database, by transactions at the same time."""
    with ExitStack() as stack:
        for _ in range(sessions):
            connection = stack.enter_context(psycopg.connect(dsn, prepare_threshold=None))
            connection.execute("SELECT 1")
    return dsn


def _configuration(address: Mapping[str, object], home: Path, settings: Mapping[str, object]) -> str:
    reached = {key: address[key] for key in ("host", "port", "user", "password") if address.get(key)}
    lines = ["[databases]", "* = " + " ".join(f"{key}={value}" for key, value in reached.items())]
    return "\n".join([*lines, "[pgbouncer]", *(f"{key} = {value}" for key, value in settings.items()), ""])


def _identity(home: Path, host: str) -> dict[str, object]:
    """PgBouncer refuses to run as root: it becomes the owner of the server's socket, who alone may use it."""
    if os.geteuid() != 0:
        return {}
    owner = Path(host).stat() if host.startswith("/") else None
    uid, gid = (owner.st_uid, owner.st_gid) if owner and owner.st_uid else (65534, 65534)
    for path in (home, home / "pgbouncer.ini", home / "users"):
        os.chown(path, uid, gid)
    return {"user": uid, "group": gid, "extra_groups": []}


def _wait(dsn: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(dsn).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"pgbouncer does not answer: {log.read_text()}")
            time.sleep(0.05)
