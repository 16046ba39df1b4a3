"""Workers that embed what is pending: several at once, killed, cancelled, and without an embedder."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta

import pytest

from symfonic_pg.embedders import EmbedderError, EmbedderUnavailable, Retry
from symfonic_pg.memory import MemoryRecord, MemoryUnavailable
from symfonic_pg.postgres.embedded import EmbeddedServer
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.postgres.pending import START, PendingVectors
from symfonic_pg.store import EmbedReport, MemoryStore, PendingCounts, embedding
from tests.integration.pending import Embedder, leases, records, stale, value

SOON = timedelta(milliseconds=300)


@pytest.fixture
async def plain(database: str) -> AsyncIterator[MemoryStore]:
    """A store that writes without embedding."""
    async with MemoryStore.connect(database) as store:
        yield store


@pytest.fixture
def embedder() -> Embedder:
    return Embedder()


@pytest.fixture
async def store(database: str, embedder: Embedder) -> AsyncIterator[MemoryStore]:
    """A store on the same database that embeds."""
    async with MemoryStore.connect(database, embedder=embedder) as store:
        yield store


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watchers wait hundredths of a second where they would wait seconds."""
    monkeypatch.setattr(embedding, "_BACKOFF", Retry(attempts=1 << 30, first=0.02, longest=0.05))


def refusing(*texts: str) -> object:
    """An embedder's `raises` that takes no batch with one of these texts in it."""
    return lambda asked: EmbedderError("too long for the model") if set(asked) & set(texts) else None


def always(error: Exception) -> object:
    """An embedder's `raises` that takes nothing at all."""
    return lambda asked: error


async def pending_of(store: MemoryStore) -> PendingVectors:
    """The statements of a worker, for one that stops in the middle."""
    embedder = store.settings.embedder
    assert embedder is not None
    model = await store.repository.register_model(embedder.model, embedder.dimension)
    return PendingVectors(store.repository.executor, model, "", schema="symfonic")


@pytest.mark.parametrize(("workers", "batch_size"), [(2, 10), (6, 3)])
async def test_several_workers_share_the_work_and_embed_each_text_once(
    database: str, plain: MemoryStore, workers: int, batch_size: int
) -> None:
    for tenant in range(4):
        await plain.remember(records(30, f"org:{tenant}", f"{tenant}-"))
    embedders = [Embedder() for _ in range(workers)]
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(MemoryStore.connect(database, embedder=one)) for one in embedders
        ]
        for one in embedders:
            one.meanwhile = lambda texts: asyncio.sleep(random.uniform(0.005, 0.03))
        reports = await asyncio.gather(*(one.embed_pending(batch_size=batch_size) for one in stores))
    assert sum(report.embedded for report in reports) == 120
    asked = Counter(text for one in embedders for text in one.asked)
    assert set(asked.values()) == {1}
    assert sum(bool(one.batches) for one in embedders) > 1
    assert await leases(database) == 0
    assert await value(database, "SELECT count(*) FROM symfonic.embeddings") == 120


async def test_one_store_may_embed_in_several_tasks(plain: MemoryStore, store: MemoryStore) -> None:
    await plain.remember(records(60))
    reports = await asyncio.gather(*(store.embed_pending(batch_size=7) for _ in range(3)))
    assert sum(report.embedded for report in reports) == 60


async def test_writers_and_workers_at_once_end_with_every_vector_of_its_own_text(
    database: str, plain: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(20))
    done = asyncio.Event()
    chance = random.Random(7)

    async def write(writer: int) -> None:
        for step in range(25):
            names = chance.sample(range(20), 4)
            await plain.remember(
                [MemoryRecord(f"r{n}", "org:acme", "semantic", f"{writer} {step} {n}") for n in names]
            )
            if step % 5 == 0:
                await plain.forget("org:acme", [f"r{chance.randrange(20)}"])

    async def work() -> None:
        async with MemoryStore.connect(database, embedder=embedder) as store:
            while not done.is_set():
                await store.embed_pending(batch_size=5)

    workers = [asyncio.create_task(work()) for _ in range(2)]
    await asyncio.gather(*(write(writer) for writer in range(3)))
    done.set()
    await asyncio.gather(*workers)
    async with MemoryStore.connect(database, embedder=embedder) as store:
        await store.embed_pending()
        assert await store.count_pending() == PendingCounts()
    assert await stale(database) == 0
    assert await leases(database) == 0


KILLED = """
import asyncio, sys
from datetime import timedelta
from symfonic_pg.store import MemoryStore
from tests.integration.pending import Embedder

async def main():
    embedder = Embedder()
    async def run(texts):
        print("the model runs", flush=True)
        await asyncio.sleep(60)
    embedder.meanwhile = run
    async with MemoryStore.connect(sys.argv[1], embedder=embedder) as store:
        await store.embed_pending(batch_size=5, lease=timedelta(seconds=2))

asyncio.run(main())
"""


async def test_what_a_killed_worker_had_comes_back_when_its_lease_runs_out(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(8))
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, database, stdout=asyncio.subprocess.PIPE
    )
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"the model runs\n"
    worker.kill()
    await worker.wait()
    first = await store.embed_pending()
    assert first == EmbedReport(embedded=3, remaining=5)
    assert await store.embed_pending() == EmbedReport(remaining=5)
    await asyncio.sleep(2)
    assert await store.embed_pending() == EmbedReport(embedded=5, remaining=0)
    assert await leases(database) == 0


async def test_a_text_that_kills_its_worker_takes_no_other_along_for_long(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(4))
    pending = await pending_of(store)
    moment = timedelta(milliseconds=50)

    async def claimed(after: tuple[str, int] = START) -> list[str]:
        claim = await pending.claim(after, batch=3, lease=moment, attempts=3)
        await asyncio.sleep(0.1)  # and then the worker is gone
        return [memory.record.record_id for memory in claim.memories]

    assert await claimed() == ["r0", "r1", "r2"]
    assert await claimed() == ["r0"]
    assert await claimed() == ["r0"]
    assert await claimed() == []  # tried three times: set aside
    assert await store.embed_pending() == EmbedReport(embedded=3, remaining=0)
    assert [len(batch) for batch in embedder.batches] == [1, 1, 1]  # r1 and r2 alone, r3 by itself anyway
    (lost,) = await store.failed_embeddings()
    assert (lost.record_id, lost.attempts) == ("r0", 3)
    assert lost.error is not None
    assert "ended before it was done" in lost.error


async def test_a_cancelled_worker_gives_back_what_it_has(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(5))
    running = asyncio.Event()

    async def run(texts: object) -> None:
        running.set()
        await asyncio.sleep(60)

    embedder.meanwhile = run
    task = asyncio.create_task(store.embed_pending())
    await running.wait()
    assert await leases(database) == 5
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await leases(database) == 0
    embedder.meanwhile = None
    assert await store.embed_pending() == EmbedReport(embedded=5, remaining=0)
    assert [len(batch) for batch in embedder.batches] == [5, 5]


async def test_a_worker_whose_lease_ran_out_writes_only_what_is_still_missing(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(2))
    slow, other = await pending_of(store), await pending_of(store)
    had = (await slow.claim(START, batch=2, lease=timedelta(milliseconds=10), attempts=3)).memories
    await asyncio.sleep(0.05)
    (taken,) = (await other.claim(START, batch=2, lease=timedelta(minutes=5), attempts=3)).memories
    vectors = [embedder.vector(memory.record.text) for memory in had]
    assert await slow.release(had[:1]) == 0  # it is the other's now
    assert await slow.store(had, vectors) == (2, 0, 0)
    assert await other.store([taken], [embedder.vector(taken.record.text)]) == (1, 0, 0)
    assert await leases(database) == 0
    assert await store.count_pending() == PendingCounts()


async def test_a_poison_text_is_found_set_aside_listed_and_tried_again_on_request(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(10))
    embedder.raises = refusing("text r4")
    first = await store.embed_pending(lease=SOON)
    assert first == EmbedReport(embedded=9, failed=1, remaining=1)
    # It rests until its lease has run out, and counts as pending meanwhile.
    assert await store.embed_pending(lease=SOON) == EmbedReport(remaining=1)
    assert await store.failed_embeddings() == []
    await asyncio.sleep(0.4)
    assert await store.embed_pending(lease=SOON) == EmbedReport(failed=1, set_aside=1, remaining=0)
    await asyncio.sleep(0.4)
    asked = len(embedder.batches)
    assert await store.embed_pending() == EmbedReport(remaining=0)
    assert len(embedder.batches) == asked
    assert await store.count_pending() == PendingCounts(failed=1)

    (failed,) = await store.failed_embeddings()
    assert (str(failed.scope), failed.record_id, failed.reason) == ("org:acme", "r4", "failed")
    assert (failed.attempts, failed.error) == (3, "too long for the model")
    assert await store.failed_embeddings("org:other") == []
    assert await store.failed_embeddings(after=failed) == []

    assert await store.retry_embeddings("org:other") == 0
    assert await store.retry_embeddings("org:acme", ["r4"]) == 1
    assert await store.count_pending() == PendingCounts(waiting=1)
    embedder.raises = refusing()
    assert await store.embed_pending() == EmbedReport(embedded=1, remaining=0)
    assert await store.failed_embeddings() == []
    assert await leases(database) == 0


async def test_a_changed_text_or_hook_gives_a_poison_text_another_chance(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(2))
    embedder.raises = refusing("text r0", "text r1")
    for _ in range(3):
        await store.embed_pending(lease=SOON)
        await asyncio.sleep(0.35)
    assert await store.count_pending() == PendingCounts(failed=2)
    await plain.remember(MemoryRecord("r0", "org:acme", "semantic", "shorter"))
    assert await store.count_pending() == PendingCounts(waiting=1, failed=1)
    assert [one.record_id for one in await store.failed_embeddings()] == ["r1"]
    assert await store.embed_pending() == EmbedReport(embedded=1, remaining=0)

    class Shorter:
        version = "short-1"

        def __call__(self, record: MemoryRecord) -> str:
            return record.text[-2:]

    async with MemoryStore.connect(database, embedder=embedder, embed_text=Shorter()) as shorter:
        assert await shorter.embed_pending() == EmbedReport(embedded=2, remaining=0)
    assert await leases(database) == 0


async def test_a_vector_that_comes_by_remember_ends_the_matter(
    plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(1))
    embedder.raises = refusing("text r0")
    for _ in range(3):
        await store.embed_pending(lease=SOON)
        await asyncio.sleep(0.35)
    assert await store.count_pending() == PendingCounts(failed=1)
    await plain.remember(records(1), [embedder.vector("text r0")], model=embedder.model)
    assert await store.count_pending() == PendingCounts()
    assert await store.failed_embeddings() == []


async def test_a_page_of_failures_follows_the_one_before(
    plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember([*records(3, "org:a/user:u1", "a"), *records(2, "org:b", "b")])
    embedder.nothing = {f"text {name}": 0.0 for name in ("a0", "a1", "a2", "b0", "b1")}
    await store.embed_pending()
    page = await store.failed_embeddings(without_embedding=True, limit=2)
    seen = [one.record_id for one in page]
    while page:
        page = await store.failed_embeddings(without_embedding=True, limit=2, after=page[-1])
        seen += [one.record_id for one in page]
    assert seen == ["a0", "a1", "a2", "b0", "b1"]
    assert len(await store.failed_embeddings("org:a", without_embedding=True)) == 3


@pytest.mark.parametrize(
    "error",
    [
        EmbedderUnavailable("the endpoint cannot be reached", model="test"),
        EmbedderError("the endpoint answered 401: is api_key right?", model="test"),
        ConnectionRefusedError("no route to host"),
    ],
    ids=["passing", "lasting", "foreign"],
)
async def test_an_embedder_that_is_down_makes_no_text_a_poison_one(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder, error: Exception
) -> None:
    await plain.remember(records(6))
    embedder.raises = always(error)
    for _ in range(5):
        report = await store.embed_pending(batch_size=4)
        assert report.unavailable
        assert report.remaining == 6
        assert report.tried == 0
        assert await leases(database) == 0
    embedder.raises = refusing()
    embedder.batches.clear()
    assert await store.embed_pending(batch_size=4) == EmbedReport(embedded=6, remaining=0)
    assert [len(batch) for batch in embedder.batches] == [4, 2]


async def test_what_was_embedded_before_the_embedder_went_down_stays(
    plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(6))
    embedder.raises = lambda texts: EmbedderUnavailable("busy") if "text r4" in texts else None
    report = await store.embed_pending(batch_size=2)
    assert report == EmbedReport(embedded=4, remaining=2, unavailable="busy")


async def test_an_embedder_that_hangs_is_given_up_with_the_lease(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(2))
    embedder.meanwhile = lambda texts: asyncio.sleep(60)
    report = await asyncio.wait_for(store.embed_pending(lease=SOON), 5)
    assert report.unavailable is not None
    assert "no answer within the lease of 0.3 seconds" in report.unavailable
    assert await leases(database) == 0


async def test_an_embedder_of_another_dimension_than_promised_is_out_of_order(
    plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(2))

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] * 3 for _ in texts]

    embedder.embed = embed  # type: ignore[method-assign]
    report = await store.embed_pending()
    assert report.unavailable is not None
    assert "3 dimensions" in report.unavailable
    assert report.remaining == 2


async def test_a_record_that_the_hook_cannot_take_stops_no_other(
    database: str, plain: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(4))

    class Hook:
        version = "1"

        def __call__(self, record: MemoryRecord) -> str:
            if record.record_id == "r1":
                raise KeyError("speaker")
            return None if record.record_id == "r2" else record.text  # type: ignore[return-value]

    async with MemoryStore.connect(database, embedder=embedder, embed_text=Hook()) as store:
        for failed in (2, 2, 2):
            assert (await store.embed_pending(lease=SOON)).failed == failed
            await asyncio.sleep(0.35)
        assert await store.count_pending() == PendingCounts(failed=2)
        errors = {one.record_id: one.error for one in await store.failed_embeddings()}
    assert errors == {"r1": "embed_text failed: KeyError", "r2": "embed_text returned no str: NoneType"}
    assert embedder.asked == ["text r0", "text r3"]


async def test_an_error_of_any_characters_can_be_noted(
    plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(1))
    awful = "bad \x00 \ud800 " + "x" * 5000
    embedder.raises = lambda texts: EmbedderError(awful) if "text r0" in texts else None
    for _ in range(3):
        await store.embed_pending(lease=SOON)
        await asyncio.sleep(0.35)
    (failed,) = await store.failed_embeddings()
    assert failed.error is not None
    assert failed.error.startswith("bad  ? xxx")
    assert len(failed.error) == 500


async def test_a_watcher_catches_up_and_goes_on(
    plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(5))
    async with aclosing(store.watch_pending(batch_size=3, pause=timedelta(milliseconds=20))) as reports:
        assert [await anext(reports) for _ in range(3)] == [
            EmbedReport(embedded=3),
            EmbedReport(embedded=2),
            EmbedReport(remaining=0),
        ]
        await plain.remember(MemoryRecord("late", "org:zeta", "semantic", "late"))
        assert await asyncio.wait_for(anext(reports), 5) == EmbedReport(embedded=1)
        assert await anext(reports) == EmbedReport(remaining=0)
    assert embedder.asked[-1] == "late"


@pytest.mark.usefixtures("impatient")
async def test_a_watcher_waits_for_an_embedder_that_is_down(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(2))
    embedder.raises = always(EmbedderUnavailable("down"))
    async with aclosing(store.watch_pending(pause=timedelta(milliseconds=20))) as reports:
        for _ in range(3):
            assert await asyncio.wait_for(anext(reports), 5) == EmbedReport(unavailable="down")
            assert await leases(database) == 0
        embedder.raises = refusing()
        assert await asyncio.wait_for(anext(reports), 5) == EmbedReport(embedded=2)


@pytest.mark.usefixtures("impatient")
async def test_a_watcher_outlives_a_restart_of_the_server(
    own_server: EmbeddedServer, embedder: Embedder
) -> None:
    migrate(own_server.dsn)
    async with (
        MemoryStore.connect(own_server.dsn) as plain,
        MemoryStore.connect(own_server.dsn, embedder=embedder) as store,
        aclosing(store.watch_pending(pause=timedelta(milliseconds=20))) as reports,
    ):
        assert await anext(reports) == EmbedReport(remaining=0)
        await asyncio.to_thread(own_server.stop)
        gone = await asyncio.wait_for(anext(reports), 10)
        assert gone.unavailable is not None
        await asyncio.to_thread(own_server.start)
        await plain.remember(records(1))
        async with asyncio.timeout(10):
            async for report in reports:
                if report.embedded:
                    break
        assert report == EmbedReport(embedded=1)


async def test_a_database_out_of_reach_is_unavailable(embedder: Embedder) -> None:
    async with MemoryStore.connect("postgresql://nobody@127.0.0.1:1/none", embedder=embedder) as store:
        with pytest.raises(MemoryUnavailable):
            await store.embed_pending()
