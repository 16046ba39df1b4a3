"""Recall as a whole: where its names live, how often the stores are asked, and what dies when."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

import symfonic_pg.memory as memory
from symfonic_pg.memory import (
    Association,
    Candidate,
    ConversationTurn,
    MemoryLayer,
    MemoryQuery,
    MemoryRecord,
    MemoryScope,
    MemoryUnavailable,
    RelevanceSignals,
    RetrievalPolicy,
    SpreadingActivation,
    WorkingWindow,
    memory_capabilities,
    recall,
    scoring,
)

SESSION = MemoryScope.parse("org:acme/user:u1/session:s1")
ORG = SESSION.root


def record(record_id: str, text: str = "text", scope: MemoryScope = SESSION) -> MemoryRecord:
    return MemoryRecord(record_id, scope, "semantic", text)


class Store:
    """One object that is every kind of source, counts its round trips and can die before one of them."""

    def __init__(self, *, dies_at: str = "") -> None:
        self.dies_at = dies_at
        self.calls: list[str] = []

    def _trip(self, name: str) -> None:
        self.calls.append(name)
        if name == self.dies_at:
            raise MemoryUnavailable("connection lost")

    async def search(self, query: MemoryQuery, layers: frozenset[MemoryLayer]) -> list[Candidate]:
        self._trip("search")
        return [Candidate(record("refund", "refunds take a week"), RelevanceSignals(cue=0.8))]

    async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str]) -> list[Association]:
        self._trip("neighbours")
        return [Association("refund", record("vip", "gold customers get theirs at once", ORG), weight=0.9)]

    async def recent(self, scope: MemoryScope, limit: int) -> list[ConversationTurn]:
        self._trip("recent")
        return [ConversationTurn("t1", "ann", "where is my money?")]


def whole(store: Store) -> recall.Hydrator:
    return memory_capabilities(
        store,
        policy=RetrievalPolicy(min_relevance=0.3),
        activation=SpreadingActivation(store, max_hops=1),
        window=WorkingWindow(store, recent_turns=5),
    )


async def test_a_recall_asks_search_graph_and_window_once_each() -> None:
    store = Store()
    answer = await whole(store).hydrate(MemoryQuery(SESSION, "refund"))
    assert sorted(store.calls) == ["neighbours", "recent", "search"]
    assert answer.render().splitlines() == [
        "[working] ann: where is my money?",
        "[semantic] refunds take a week",
        "[semantic] gold customers get theirs at once",
    ]
    assert [(m.record_id, m.distance, m.via) for m in answer.memories] == [
        ("refund", 0, ()),
        ("vip", 2, ("refund", "vip")),
    ]
    answer.report.reconcile()
    assert answer.report.explain("vip").only_by_graph
    assert not answer.degraded


@pytest.mark.parametrize(
    ("dies_at", "lines", "graph", "window"),
    [("neighbours", 2, True, False), ("recent", 2, False, True)],
)
async def test_a_store_that_dies_after_the_search_degrades_the_answer_and_says_so(
    dies_at: str, lines: int, graph: bool, window: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "symfonic_pg.memory"):
        answer = await whole(Store(dies_at=dies_at)).hydrate(MemoryQuery(SESSION, "refund"))
    assert len(answer.render().splitlines()) == lines
    assert (answer.retrieval.activation.degraded, answer.working.degraded) == (graph, window)
    assert answer.degraded
    assert "MemoryUnavailable" in caplog.text
    answer.report.reconcile()


async def test_a_store_that_is_dead_at_search_is_unavailable() -> None:
    with pytest.raises(MemoryUnavailable, match="connection lost"):
        await whole(Store(dies_at="search")).hydrate(MemoryQuery(SESSION, "refund"))


@pytest.mark.parametrize(
    ("home", "names"),
    [
        (
            recall,
            "Association AssociationSource SpreadingActivation ActivationLog ActivatedNode "
            "ConversationSource ConversationTurn WorkingContext WorkingWindow Hydrator HydratedRecall "
            "RecallReport memory_capabilities",
        ),
        (
            scoring,
            "RetrievalScorer ScoringWeights MemoryNode NodeId GraphTraversal scope_specificity_score",
        ),
    ],
)
def test_names_live_in_their_home_and_in_the_vocabulary(home: object, names: str) -> None:
    for name in names.split():
        assert name in home.__all__
        assert name in memory.__all__
        assert getattr(home, name) is getattr(memory, name)
