"""The store for scripts and workers: one bridge, closed cleanly, safe under threads, forks and Ctrl-C."""

from __future__ import annotations

import inspect
import os
import pydoc
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import FunctionType

import psycopg
import pytest

from symfonic_pg import MemoryRecord, MemoryScope
from symfonic_pg import MemoryStore as AsyncMemoryStore
from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import MemoryContractError, MemoryUnavailable
from symfonic_pg.postgres.repository import MemoryRepository as AsyncMemoryRepository
from symfonic_pg.sync import MemoryRepository, MemoryStore
from symfonic_pg.sync.bridge import Bridge
from symfonic_pg.sync.verbs import RepositoryVerbs, StoreVerbs

ROOT = Path(__file__).parents[2]
SCOPE = MemoryScope.parse("org:acme/user:u1")
DRIVERS = pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])


def note(record_id: str, content: str = "likes blue paper") -> MemoryRecord:
    return MemoryRecord(record_id, SCOPE, "semantic", content)


@pytest.fixture
def store(database: str) -> Iterator[MemoryStore]:
    with MemoryStore.connect(database) as opened:
        yield opened


def bridges() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "symfonic-pg-bridge"]


CLIENTS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


def has_sessions(dsn: str, expected: int) -> bool:
    """Whether so many clients are connected soon, without the one that asks: a server sees them go late."""
    deadline = time.monotonic() + 5.0
    with psycopg.connect(dsn, autocommit=True) as outsider:
        while True:
            found = outsider.execute(CLIENTS).fetchone()
            assert found is not None
            if found[0] == expected or time.monotonic() > deadline:
                return bool(found[0] == expected)
            time.sleep(0.02)


@DRIVERS
def test_a_block_opens_a_store_and_closes_all_of_it(database: str, driver: str) -> None:
    before = len(bridges())
    with MemoryStore.connect(database, driver=driver) as store:
        assert store.remember([note("m1"), note("m2")]).inserted == 2
        assert len(store.recall(SCOPE, "paper", limit=1).memories) == 1
        assert store.dsn == database
        assert len(bridges()) == before + 1
        assert has_sessions(database, 1)
    assert len(bridges()) == before
    assert has_sessions(database, 0)
    with pytest.raises(MemoryUnavailable, match="closed"):
        store.count(SCOPE)
    store.close()


def test_a_store_may_live_without_a_block(database: str) -> None:
    store = MemoryStore.connect(database)
    assert store.count(SCOPE) == 0
    store.close()
    assert has_sessions(database, 0)


def test_a_store_that_nobody_holds_any_more_takes_its_thread_along(database: str) -> None:
    before = len(bridges())
    store = MemoryStore.connect(database)
    store.count(SCOPE)
    del store
    assert len(bridges()) == before
    assert has_sessions(database, 0)


def test_a_script_that_forgets_to_close_ends_all_the_same(database: str) -> None:
    script = f"""
        from symfonic_pg.sync import MemoryStore
        store = MemoryStore.connect({database!r})
        print(store.count("org:acme"))
    """
    assert _run(script) == "0\n"


def test_what_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    before = len(bridges())
    with pytest.raises(MemoryContractError):
        MemoryStore.connect("nonsense")
    with pytest.raises(MemoryContractError):
        MemoryStore.connect("postgresql://localhost/x", pool_max=0)
    assert len(bridges()) == before


def test_a_server_out_of_reach_is_unavailable(tmp_path: Path) -> None:
    address = f"postgresql:///x?host={tmp_path}"
    with MemoryStore.connect(address) as store, pytest.raises(MemoryUnavailable):
        store.count(SCOPE)


def test_the_embedded_server_runs_for_as_long_as_the_store(server_home: Path) -> None:
    with MemoryStore.embedded(server_home, recent_turns=3) as store:
        store.remember(note("m1"))
        assert store.settings.recent_turns == 3
        assert store.recall(SCOPE, "paper").render() == "[semantic] likes blue paper"
    with MemoryStore.embedded(server_home) as again:
        assert again.count(SCOPE) == 1


def test_any_number_of_threads_may_call(store: MemoryStore) -> None:
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for number in range(5):
                store.remember(note(f"{name}-{number}"))
                store.recall(SCOPE, "paper")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.count(SCOPE) == 40


def test_what_is_given_lazily_is_taken_in_the_callers_thread(store: MemoryStore) -> None:
    threads: set[threading.Thread] = set()

    def notes(prefix: str, count: int) -> Iterator[MemoryRecord]:
        for number in range(count):
            threads.add(threading.current_thread())
            yield note(f"{prefix}{number}")

    assert store.load(notes("l", 1234), batch_size=500).inserted == 1234
    assert store.remember(notes("r", 3)).inserted == 3
    assert len(store.get(SCOPE, (f"l{number}" for number in range(10)))) == 10
    assert threads == {threading.current_thread()}


def test_an_iterable_that_fails_says_so_and_keeps_the_batches_before(store: MemoryStore) -> None:
    def notes() -> Iterator[MemoryRecord]:
        yield from (note(f"m{number}") for number in range(1500))
        raise LookupError("no more rows")

    with pytest.raises(LookupError, match="no more rows"):
        store.load(notes(), batch_size=500)
    assert store.count(SCOPE) == 1500


def test_an_error_of_a_batch_names_its_position_in_the_whole(store: MemoryStore) -> None:
    elsewhere = MemoryRecord("m1200", MemoryScope.parse("org:acme/user:u2"), "semantic", "taken")
    store.remember(elsewhere)
    with pytest.raises(MemoryContractError, match="1200"):
        store.load((note(f"m{number}") for number in range(1500)), batch_size=500)


word: ContextVar[str] = ContextVar("word", default="none")


class Listening(HashingEmbedder):
    """Notes in which context it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        self.heard.append(word.get())
        return list(await super().embed(texts))


def test_the_callers_context_reaches_the_embedder(database: str) -> None:
    embedder = Listening()
    with MemoryStore.connect(database, embedder=embedder) as store:
        word.set("from here")
        store.remember(note("m1"))
        with psycopg.connect(database) as connection:
            store.using(connection).remember(note("m2"))
    assert embedder.heard == ["from here", "from here"]


def test_what_an_embedder_opened_on_the_bridge_is_closed_there(database: str) -> None:
    class Closing(HashingEmbedder):
        closed_in: threading.Thread | None = None

        async def aclose(self) -> None:
            self.closed_in = threading.current_thread()

    embedder = Closing()
    before = set(bridges())
    with MemoryStore.connect(database, embedder=embedder) as store:
        store.remember(note("m1"))
        [bridge] = set(bridges()) - before
    assert embedder.closed_in is bridge


def test_a_bridge_is_not_crossed_from_its_own_side() -> None:
    bridge = Bridge()

    async def circular() -> None:
        bridge.run(lambda _: circular())

    with pytest.raises(MemoryContractError, match="another thread"):
        bridge.run(lambda _: circular())
    bridge.close()


def test_vectors_can_be_made_up_for_later(database: str) -> None:
    with MemoryStore.connect(database) as bare:
        bare.remember([note("m1"), note("m2")])
    with MemoryStore.connect(database, embedder=HashingEmbedder()) as store:
        assert store.count_pending().waiting == 2
        assert store.embed_pending().embedded == 2
        reports = store.watch_pending()
        assert next(reports).remaining == 0
        reports.close()
        assert store.fresh.repository.model(HashingEmbedder().model) is not None


def test_ctrl_c_while_an_embedder_thinks_ends_the_call(database: str) -> None:
    class Slow(HashingEmbedder):
        cancelled = False

        async def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
            import asyncio

            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            return []

    embedder = Slow()
    with MemoryStore.connect(database, embedder=embedder) as store, psycopg.connect(database) as connection:
        for asked in (store, store.using(connection)):
            embedder.cancelled = False
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                asked.remember(note("m1"))
            timer.join()
            assert time.monotonic() - began < 3
            assert embedder.cancelled
        assert store.count(SCOPE) == 0


def test_calls_under_way_end_when_the_store_is_closed(database: str) -> None:
    store = MemoryStore.connect(database)
    store.remember(note("m1"))
    raised: list[BaseException] = []

    def write() -> None:
        try:
            store.remember(note("m1", "changed"))
        except BaseException as error:
            raised.append(error)

    with psycopg.connect(database) as other:
        other.execute("SELECT 1 FROM symfonic.memories FOR UPDATE")
        thread = threading.Thread(target=write)
        thread.start()
        time.sleep(0.3)
        store.close()
        thread.join(5)
    assert not thread.is_alive()
    assert [type(error) for error in raised] == [MemoryUnavailable]


def _run(script: str) -> str:
    # A process of its own: forking one with pytest's threads in it proves nothing about ours.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@DRIVERS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_gets_connections_of_its_own(database: str, driver: str) -> None:
    script = f"""
        import os, sys, warnings
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        from symfonic_pg.memory import MemoryRecord, MemoryScope
        from symfonic_pg.sync import MemoryStore

        scope = MemoryScope.parse("org:acme")
        with MemoryStore.connect({database!r}, driver={driver!r}) as store:
            store.remember(MemoryRecord("parent", scope, "semantic", "from the parent"))
            children = []
            for number in range(3):
                child = os.fork()
                if child == 0:
                    for _ in range(20):
                        store.count(scope)
                    store.remember(MemoryRecord(f"child{{number}}", scope, "semantic", "from a child"))
                    break
                children.append(child)
            else:
                for _ in range(50):
                    store.count(scope)
                assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
                print(store.count(scope))
    """
    assert _run(script) == "4\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_that_never_asks_leaves_the_parents_connections_alone(database: str) -> None:
    script = f"""
        import gc, os, sys, warnings
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        from symfonic_pg.sync import MemoryStore

        store = MemoryStore.connect({database!r}, driver="psycopg", pool_max=1)
        store.count("org:acme")
        child = os.fork()
        if child == 0:
            store.close()
            del store
            gc.collect()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(store.count("org:acme"))
        store.close()
    """
    assert _run(script) == "0\n"


def test_prefork_workers_share_a_store_of_their_parent(database: str) -> None:
    script = f"""
        import multiprocessing, warnings
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        from symfonic_pg.sync import MemoryStore

        store = MemoryStore.connect({database!r})

        def work(number):
            return store.count("org:acme")

        store.count("org:acme")
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(work, range(4)))
    """
    assert _run(script) == "[0, 0, 0, 0]\n"


@pytest.mark.parametrize(
    ("original", "twin"),
    [(AsyncMemoryStore, StoreVerbs), (AsyncMemoryRepository, RepositoryVerbs)],
    ids=["store", "repository"],
)
def test_every_verb_has_a_twin_that_is_no_copy(original: type, twin: type) -> None:
    verbs = {
        name: member
        for name, member in inspect.getmembers(original)
        if not name.startswith("_")
        and (inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member))
    }
    assert len(verbs) > 15
    for name, verb in verbs.items():
        assert vars(twin)[name].__wrapped__ is verb
        assert inspect.signature(vars(twin)[name]) == inspect.signature(verb)
    own = {name for name, member in vars(twin).items() if isinstance(member, FunctionType)}
    assert own == set(verbs)


def test_help_reads_like_the_originals() -> None:
    page = pydoc.plain(pydoc.render_doc(MemoryStore))
    assert "recall(self, /, query: 'MemoryQuery | Scope', cue: 'str | RetrievalPolicy | None' = None" in page
    assert "Memories in order, the conversation window, and the ledger of both." in page
    assert "connect(dsn: 'str', *, pool_min: 'int' = 0" in page
    assert "-> 'MemoryStore'" in page
    assert "search(self, query: 'MemoryQuery', layers: 'frozenset[MemoryLayer]'" in pydoc.plain(
        pydoc.render_doc(MemoryRepository)
    )


def test_one_driver_is_enough(database: str) -> None:
    script = f"""
        import sys
        sys.modules |= dict.fromkeys(["psycopg", "psycopg_pool", "sqlalchemy", "alembic"])
        from symfonic_pg.sync import MemoryStore
        with MemoryStore.connect({database!r}) as store:
            print(store.count("org:acme"))
    """
    assert _run(script) == "0\n"
    assert _run(script.replace('"psycopg", "psycopg_pool"', '"asyncpg"')) == "0\n"


def test_a_store_that_was_closed_stays_closed_in_a_child(database: str) -> None:
    script = f"""
        import os, warnings
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        from symfonic_pg.memory import MemoryUnavailable
        from symfonic_pg.sync import MemoryStore
        store = MemoryStore.connect({database!r})
        store.close()
        child = os.fork()
        if child == 0:
            try:
                store.count("org:acme")
            except MemoryUnavailable:
                os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert _run(script) == "7\n"


def test_no_call_is_left_behind_by_a_store_that_closes(database: str) -> None:
    def ask(store: MemoryStore, ended: list[str]) -> None:
        try:
            while True:
                store.count(SCOPE)
        except MemoryUnavailable as error:
            ended.append(str(error))

    for _ in range(5):
        store = MemoryStore.connect(database)
        ended: list[str] = []
        threads = [threading.Thread(target=ask, args=(store, ended)) for _ in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        store.close()
        for thread in threads:
            thread.join(10)
        assert len(ended) == 8
        assert all("closed" in message for message in ended)


CHECKED = """
from symfonic_pg.sync import MemoryRepository, MemoryStore

with MemoryStore.connect("postgresql://localhost/x", recent_turns=3) as store:
    reveal_type(store)
    reveal_type(store.recall("org:acme", "refund", limit=5))
    reveal_type(store.list("org:acme"))
    reveal_type(store.using(None).count("org:acme"))
    reveal_type(store.embed_pending(limit=3))
    reveal_type(next(store.watch_pending()))
    reveal_type(MemoryRepository(None).models())
    store.count(1)
    store.count("org:acme", "too much")
    store.reinforce("org:acme")
MemoryStore.connect(1)
MemoryStore.connect("postgresql://localhost/x", recent_turn=3)
"""


def test_a_type_checker_knows_every_signature(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "script.py").write_text(CHECKED)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary",
         "--cache-dir", str(tmp_path / "cache"), "--config-file", str(ROOT / "pyproject.toml"),
         str(tmp_path / "script.py")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [line.partition("script.py:")[2] for line in checked.stdout.splitlines() if "script.py:" in line]
    revealed = [line.rpartition('"')[0].partition('"')[2] for line in lines if "Revealed" in line]
    assert revealed == [
        "symfonic_pg.sync.store.MemoryStore",
        "symfonic_pg.memory.hydration.HydratedRecall",
        "list[symfonic_pg.memory.records.MemoryRecord]",
        "int",
        "symfonic_pg.store.embedding.EmbedReport",
        "symfonic_pg.store.embedding.EmbedReport",
        "typing.Sequence[symfonic_pg.memory.observing.EmbeddingModel]",
    ]
    wrong = {int(line.partition(":")[0]) for line in lines if "error" in line}
    assert wrong == {12, 13, 14, 15, 16}
