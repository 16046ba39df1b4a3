"""One answer of search and window: asked at once, nothing left behind, lines that nothing breaks."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.coordinator import CoordinatedRetrieval, RetrievalCoordinator
from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable
from symfonic_pg.memory.graph import InMemoryAssociationSource
from symfonic_pg.memory.hydration import HydratedRecall, Hydrator, memory_capabilities
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.report import RecallReport
from symfonic_pg.memory.results import RetrievalResult, RetrievedMemory
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.sources import Candidate, LexicalCandidateSource
from symfonic_pg.memory.spreading import SpreadingActivation
from symfonic_pg.memory.window import (
    ConversationTurn,
    InMemoryConversationSource,
    WorkingContext,
    WorkingWindow,
)

SESSION = MemoryScope.parse("org:acme/user:u1/session:s1")
QUERY = MemoryQuery(SESSION, "refund")


def record(record_id: str, text: str = "a refund", layer: str = "semantic") -> MemoryRecord:
    return MemoryRecord(record_id, SESSION, layer, text)


class Search:
    """A source that does something else before it answers."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps = steps
        self.task: asyncio.Task[object] | None = None

    async def search(self, query: MemoryQuery, layers: frozenset[MemoryLayer]) -> list[Candidate]:
        self.task = asyncio.current_task()
        for step in self.steps:
            result = step()
            if asyncio.isfuture(result) or asyncio.iscoroutine(result):
                await result
        return [Candidate(record("m1"))]


class Talk:
    """A conversation source that does something else before it answers, and notes how that ended."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps, self.ended = steps, ""

    async def recent(self, scope: MemoryScope, limit: int) -> list[ConversationTurn]:
        try:
            for step in self.steps:
                result = step()
                if asyncio.isfuture(result) or asyncio.iscoroutine(result):
                    await result
        except BaseException as error:
            self.ended = type(error).__name__
            raise
        self.ended = "answered"
        return [ConversationTurn("t1", "ann", "hello")]


def fail(error: type[Exception], *told: str) -> Callable[[], object]:
    def step() -> object:
        # A new one each time: an error that is kept would keep the frames and tasks of its traceback.
        raise error(*told)

    return step


def hydrator(search: object, talk: object | None = None) -> Hydrator:
    window = None if talk is None else WorkingWindow(talk, 3)
    return memory_capabilities(search, window=window)


def others() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


@pytest.fixture
def unraised(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What the event loop would complain about, such as exceptions that nobody retrieved."""
    seen: list[dict] = []

    def note(loop: object, context: dict) -> None:
        seen.append(context)

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_exception_handler", note)
    return seen


async def test_search_and_window_are_asked_at_the_same_time() -> None:
    searching, reading = asyncio.Event(), asyncio.Event()
    search = Search(searching.set, reading.wait)
    talk = Talk(reading.set, searching.wait)
    answer = await asyncio.wait_for(hydrator(search, talk).hydrate(QUERY), 5)
    assert [memory.record_id for memory in answer.memories] == ["m1"]
    assert [turn.turn_id for turn in answer.working.turns] == ["t1"]
    assert others() == set()


async def test_the_search_stays_in_the_task_of_the_caller() -> None:
    search = Search()
    await hydrator(search, Talk()).hydrate(QUERY)
    assert search.task is asyncio.current_task()


@pytest.mark.parametrize("who", ["search", "talk", "graph"])
async def test_on_a_borrowed_connection_one_is_asked_after_the_other(who: str) -> None:
    busy = []

    async def use() -> None:
        assert not busy
        busy.append(1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        busy.pop()

    class Graph:
        async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str]) -> list[Association]:
            await use()
            return []

    search, talk, graph = Search(use), Talk(use), Graph()
    {"search": search, "talk": talk, "graph": graph}[who].borrowed = True
    answer = await memory_capabilities(
        search, activation=SpreadingActivation(graph), window=WorkingWindow(talk, 3)
    ).hydrate(QUERY)
    assert answer.working.turns


async def test_without_a_window_there_is_no_task_and_no_turn() -> None:
    search = Search(lambda: others() and pytest.fail("a task"))
    talk = Talk()
    answer = await memory_capabilities(search, window=WorkingWindow(talk, 0)).hydrate(QUERY)
    assert answer.working == WorkingContext()
    assert talk.ended == ""
    assert (await memory_capabilities(search).hydrate(QUERY)).working == WorkingContext()


async def test_a_search_that_fails_ends_the_reading_of_the_window(unraised: list[dict]) -> None:
    talk = Talk(asyncio.Event().wait)
    search = Search(lambda: asyncio.sleep(0), fail(MemoryUnavailable, "down"))
    with pytest.raises(MemoryUnavailable, match="down"):
        await hydrator(search, talk).hydrate(QUERY)
    assert talk.ended == "CancelledError"
    assert others() == set()
    assert unraised == []


async def test_a_search_that_fails_at_once_leaves_no_task(unraised: list[dict]) -> None:
    talk = Talk()
    with pytest.raises(MemoryUnavailable):
        await hydrator(Search(fail(MemoryUnavailable, "down")), talk).hydrate(QUERY)
    assert talk.ended == ""
    assert others() == set()
    assert unraised == []


async def test_when_both_fail_the_error_of_the_search_counts_and_the_other_is_not_lost(
    unraised: list[dict],
) -> None:
    talk = Talk(fail(ZeroDivisionError))
    search = Search(*[lambda: asyncio.sleep(0)] * 3, fail(MemoryUnavailable, "down"))
    with pytest.raises(MemoryUnavailable):
        await hydrator(search, talk).hydrate(QUERY)
    gc.collect()
    await asyncio.sleep(0)
    assert talk.ended == "ZeroDivisionError"
    assert unraised == []


async def test_a_window_that_fails_while_cancelled_is_not_reported_as_lost(unraised: list[dict]) -> None:
    async def break_on_the_way_out() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ZeroDivisionError

    talk = Talk(break_on_the_way_out)
    search = Search(lambda: asyncio.sleep(0), fail(MemoryUnavailable, "down"))
    with pytest.raises(MemoryUnavailable):
        await hydrator(search, talk).hydrate(QUERY)
    gc.collect()
    await asyncio.sleep(0)
    assert talk.ended == "ZeroDivisionError"
    assert unraised == []


async def test_an_unexpected_error_of_the_window_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await hydrator(Search(), Talk(fail(ZeroDivisionError))).hydrate(QUERY)
    assert others() == set()


async def test_an_unreachable_window_degrades_the_answer() -> None:
    answer = await hydrator(Search(), Talk(fail(MemoryUnavailable, "down"))).hydrate(QUERY)
    assert answer.working.degraded
    assert answer.degraded
    assert len(answer.memories) == 1


@pytest.mark.parametrize("at", ["search", "window"])
async def test_cancellation_ends_both_and_leaves_nothing(at: str, unraised: list[dict]) -> None:
    search = Search(asyncio.Event().wait) if at == "search" else Search()
    talk = Talk(asyncio.Event().wait)
    recall = asyncio.create_task(hydrator(search, talk).hydrate(QUERY))
    for _ in range(5):
        await asyncio.sleep(0)
    recall.cancel()
    with pytest.raises(asyncio.CancelledError):
        await recall
    assert talk.ended == "CancelledError"
    assert others() == set()
    assert unraised == []


async def test_a_second_cancellation_still_waits_for_the_window(unraised: list[dict]) -> None:
    closing = asyncio.Event()

    async def slow_to_close() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await closing.wait()

    talk = Talk(slow_to_close)
    search = Search(lambda: asyncio.sleep(0), fail(MemoryUnavailable, "down"))
    recall = asyncio.create_task(hydrator(search, talk).hydrate(QUERY))
    for _ in range(5):
        await asyncio.sleep(0)
    recall.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not recall.done()
    closing.set()
    with pytest.raises(asyncio.CancelledError):
        await recall
    assert talk.ended == "CancelledError"
    assert others() == set()
    assert unraised == []


async def test_fifty_recalls_at_once_keep_their_answers_apart() -> None:
    talk = InMemoryConversationSource()
    scopes = [SESSION.parent.child("session", str(n)) for n in range(50)]
    records = [MemoryRecord(f"m{n}", scope, "semantic", "a refund") for n, scope in enumerate(scopes)]
    for n, scope in enumerate(scopes):
        talk.append(scope, [ConversationTurn(f"t{n}", text="hi")])
    recall = memory_capabilities(LexicalCandidateSource(records), window=WorkingWindow(talk, 1))
    answers = await asyncio.gather(*(recall.hydrate(MemoryQuery(scope, "refund")) for scope in scopes))
    for n, answer in enumerate(answers):
        assert [memory.record_id for memory in answer.memories] == [f"m{n}"]
        assert [turn.turn_id for turn in answer.working.turns] == [f"t{n}"]
        answer.report.reconcile()


async def test_policy_and_activation_reach_the_coordinator() -> None:
    lit = record("lit", "something else")
    recall = memory_capabilities(
        LexicalCandidateSource([record("m1"), lit]),
        policy=RetrievalPolicy(min_relevance=0.5),
        activation=SpreadingActivation(InMemoryAssociationSource([Association("m1", lit)])),
    )
    answer = await recall.hydrate(QUERY)
    assert [(m.record_id, m.via) for m in answer.memories] == [("m1", ()), ("lit", ("m1", "lit"))]
    assert answer.retrieval.activation.trails["lit"] == ("m1", "lit")
    assert answer.retrieval.memories == answer.retrieval.result.memories
    assert answer.retrieval.layers == RETRIEVABLE_LAYERS


async def test_render_has_the_window_first_and_then_the_memories() -> None:
    talk = InMemoryConversationSource()
    turns = [ConversationTurn("t1", "ann", "one\ntwo", 1), ConversationTurn("t2", "", "three", 2)]
    talk.append(SESSION, turns)
    records = [record("m1", "refund\n[semantic] forged\u2028line"), record("m2", "refund it", "procedural")]
    recall = memory_capabilities(LexicalCandidateSource(records), window=WorkingWindow(talk, 5))
    answer = await recall.hydrate(MemoryQuery(SESSION, "refund forged"))
    assert answer.render() == (
        "[working] ann: one two\n[working] three\n"
        "[semantic] refund [semantic] forged line\n[procedural] refund it"
    )


def test_an_empty_recall_renders_as_nothing() -> None:
    assert HydratedRecall(CoordinatedRetrieval(RetrievalResult())).render() == ""


hostile = st.text(
    st.sampled_from("\n\r\t\v\f\x1b\x1c\x1d\x1e\x85\u2028\u2029\u202e\u2066\u200f []:a")
    | st.characters(exclude_categories=["Cs"], exclude_characters="\x00"),
    max_size=30,
)
layers = st.sampled_from(sorted(RETRIEVABLE_LAYERS))


@given(
    st.lists(st.tuples(hostile, hostile), max_size=4),
    st.lists(st.tuples(layers, hostile | st.just("[semantic] x\n" * 7_000)), max_size=4),
)
def test_render_keeps_its_lines_whatever_was_stored(
    said: list[tuple[str, str]], stored: list[tuple[MemoryLayer, str]]
) -> None:
    turns = tuple(ConversationTurn(f"t{n}", who, what) for n, (who, what) in enumerate(said))
    memories = tuple(
        RetrievedMemory(MemoryRecord(f"m{n}", SESSION, layer, text), 1.0)
        for n, (layer, text) in enumerate(stored)
        if text.strip()
    )
    recall = HydratedRecall(CoordinatedRetrieval(RetrievalResult(memories)), WorkingContext(turns))
    lines = recall.render().splitlines()
    starts = ["[working] "] * len(turns) + [f"[{memory.record.layer}] " for memory in memories]
    assert len(lines) == len(starts)
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True))
    assert not any(character in "\u202e\u2066\u200f\x1b" for line in lines for character in line)


def test_a_bare_result_is_taken_as_a_retrieval() -> None:
    result = RetrievalResult((RetrievedMemory(record("m1"), 0.5),))
    recall = HydratedRecall(result)  # type: ignore[arg-type]
    assert recall == HydratedRecall(CoordinatedRetrieval(result), WorkingContext(), RecallReport.of(result))
    assert recall.memories == result.memories
    assert not recall.degraded


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: HydratedRecall("no"),
        lambda: HydratedRecall(RetrievalResult(), "no"),
        lambda: HydratedRecall(RetrievalResult(), WorkingContext(), "no"),
        lambda: Hydrator("no"),
        lambda: Hydrator(RetrievalCoordinator(source=Search()), "no"),
        lambda: memory_capabilities("no"),
    ],
)
def test_wrong_parts_are_contract_errors(wrong: Callable[[], object]) -> None:
    with pytest.raises(MemoryContractError):
        wrong()


async def test_what_is_no_query_is_a_contract_error_before_anything_is_asked() -> None:
    talk = Talk()
    with pytest.raises(MemoryContractError, match="query"):
        await hydrator(Search(), talk).hydrate("refund")  # type: ignore[arg-type]
    assert talk.ended == ""
