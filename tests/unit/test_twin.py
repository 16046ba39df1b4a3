"""The in-memory repository beyond the contract: its clock, its language, its source, and what it imports."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

import symfonic_pg.testing
from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.graph import AssociationSource, HopSource
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.observations import ROUTES
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.retrieval import RetrievalCoordinator
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.sources import CandidateSource
from symfonic_pg.memory.window import ConversationSource, ConversationTurn, WorkingWindow
from symfonic_pg.testing import InMemoryCandidateSource, InMemoryRepository

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ORG = MemoryScope.of(("org", "acme"))


def note(record_id: str, text: str = "a note", **fields: object) -> MemoryRecord:
    return MemoryRecord(record_id, ORG, MemoryLayer.SEMANTIC, text, created_at=NOW, **fields)  # type: ignore[arg-type]


async def test_the_clock_decides_what_is_valid_and_when_a_use_was() -> None:
    moment = [NOW]
    repository = InMemoryRepository(clock=lambda: moment[0])
    await repository.remember([note("m", expires_at=NOW + timedelta(days=1))])
    query = MemoryQuery(ORG)
    assert len((await repository.search(query, RETRIEVABLE_LAYERS)).found) == 1
    await repository.reinforce(ORG, ["m"])
    moment[0] = NOW - timedelta(days=5)
    await repository.reinforce(ORG, ["m"])
    (record,) = await repository.get(ORG, ["m"])
    assert (record.access_count, record.last_accessed_at) == (2, NOW)
    moment[0] = NOW + timedelta(days=1)
    assert (await repository.search(query, RETRIEVABLE_LAYERS)).found == ()


async def test_the_language_of_the_repository_cuts_what_names_none() -> None:
    found = {}
    for language in ("english", "simple", "german"):
        repository = InMemoryRepository(language=language)
        await repository.remember([note("m", "the refunds, die Häuser")])
        for cue in ("the", "refund", "haus"):
            seen = await repository.search(MemoryQuery(ORG, cue), RETRIEVABLE_LAYERS)
            found[language, cue] = seen.routes.get("lexical")
    assert found == {
        ("english", "the"): None, ("english", "refund"): 1, ("english", "haus"): 0,
        ("simple", "the"): 1, ("simple", "refund"): 0, ("simple", "haus"): 0,
        ("german", "the"): 1, ("german", "refund"): 1, ("german", "haus"): 1,
    }  # fmt: skip


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(MemoryContractError, match="klingon"):
        InMemoryRepository(language="klingon")


async def test_a_graph_that_goes_on_after_three_hops_is_truncated() -> None:
    repository = InMemoryRepository()
    records = [note(name) for name in "abcde"]
    await repository.remember(records)
    query = MemoryQuery(ORG, context_ids=["a"])
    for count, expected in ((2, "exact"), (3, "truncated"), (4, "truncated")):
        await repository.associate(
            ORG, [Association(records[place].record_id, records[place + 1]) for place in range(count)]
        )
        assert (await repository.search(query, RETRIEVABLE_LAYERS)).completeness["graph"] == expected


async def test_the_source_is_what_the_coordinator_and_the_window_ask() -> None:
    repository = InMemoryRepository()
    await repository.remember([note("m", "a giraffe"), note("n", "tea")])
    await repository.append_turns(ORG, [ConversationTurn("t", "ann", "hello")])
    source = InMemoryCandidateSource(repository)
    as_candidates: CandidateSource = source
    as_edges: AssociationSource = source
    as_turns: ConversationSource = source
    assert isinstance(source, HopSource)
    assert not source.borrowed
    result = await RetrievalCoordinator(source=as_candidates).retrieve(MemoryQuery(ORG, "giraffe", limit=1))
    assert [memory.record.record_id for memory in result.memories] == ["m"]
    assert [record_id for record_id, _ in result.dropped] == ["n"]
    assert set(result.sources) < set(ROUTES)
    assert list(await as_edges.neighbours(ORG, ["m"])) == []
    assert (await WorkingWindow(as_turns, 5).read(ORG)).render() == "[working] ann: hello"


async def test_what_the_repository_keeps_is_not_the_callers_to_change() -> None:
    repository = InMemoryRepository()
    metadata: dict[str, object] = {"tags": ["a"]}
    await repository.remember([note("m", metadata=metadata)])
    metadata["tags"] = ["b"]
    (record,) = await repository.get(ORG, ["m"])
    assert record.metadata == {"tags": ["a"]}
    with pytest.raises(TypeError):
        record.metadata["tags"].append("c")


def test_every_public_name_is_there() -> None:
    assert set(symfonic_pg.testing.__all__) <= set(dir(symfonic_pg.testing))
    for name in symfonic_pg.testing.__all__:
        assert getattr(symfonic_pg.testing, name) is not None
    with pytest.raises(AttributeError, match="no_such"):
        symfonic_pg.testing.no_such  # noqa: B018


def test_the_twin_and_the_contract_need_no_third_party_package() -> None:
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from symfonic_pg.testing import CONTRACT, InMemoryCandidateSource, InMemoryRepository\n"
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['symfonic_pg']\n"
