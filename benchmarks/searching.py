"""How long a search takes, how much of that is its statement, and how much of the truth it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.database import SCHEMA, Connection, Recorder
from benchmarks.exact import Exact, recall
from benchmarks.loading import MODEL
from benchmarks.nearest import Nearest, best_nearest
from benchmarks.timing import Times, interleaved
from symfonic_pg.memory import RETRIEVABLE_LAYERS, MemoryQuery, RelevanceWeights
from symfonic_pg.memory.retrieval import RetrievalCoordinator, RetrievalPolicy
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.postgres.sources import PostgresCandidateSource

# Ranks by the cue alone: for a query without words, by the cosine.
BY_CUE = RetrievalPolicy(weights=RelevanceWeights(1.0, 0.0, 0.0, 0.0, 0.0), profile_slots=0)


@dataclass(frozen=True, slots=True)
class Speed:
    """What asking at one scope costs, one question at a time on one connection."""

    candidates: float
    search: Times
    statement: Times
    retrieve: Times
    nearest: Nearest

    @property
    def over_statement(self) -> float:
        """Search against its own statement with the same parameters, fetched and not mapped."""
        return self.search.p50 / self.statement.p50

    @property
    def over_nearest(self) -> float:
        """Search, with all its routes, against the best statement for the nearest vectors alone."""
        return self.search.p50 / self.nearest.times.p50


@dataclass(frozen=True, slots=True)
class Found:
    """The share of the nearest that was found: by the vector route, and in the coordinator's answer."""

    route: float
    answer: float
    completeness: str


async def speed(connection: Connection, questions: Sequence[MemoryQuery], exact: Exact) -> Speed:
    """Time search, its bare statement and a whole retrieval in turns, then the nearest vectors alone."""
    recorder = Recorder(connection)
    repository = MemoryRepository(recorder, schema=SCHEMA)
    coordinator = RetrievalCoordinator(source=PostgresCandidateSource(repository, model=MODEL))
    asked = []
    candidates = 0
    for question in questions:
        seen = await repository.search(question, RETRIEVABLE_LAYERS, model=MODEL)
        candidates += len(seen.found)
        asked.append((question, recorder.statement))
    search, statement, retrieve = await interleaved(
        asked,
        [
            lambda pair: repository.search(pair[0], RETRIEVABLE_LAYERS, model=MODEL),
            lambda pair: connection.fetch(pair[1].text, *pair[1].parameters),
            lambda pair: coordinator.retrieve(pair[0]),
        ],
    )
    nearest = await best_nearest(connection, questions, exact)
    return Speed(candidates / len(questions), search, statement, retrieve, nearest)


async def found(connection: Connection, questions: Sequence[MemoryQuery], exact: Exact) -> Found:
    """Recall of the vector route and of the whole answer, for the same questions without their words."""
    repository = MemoryRepository(Recorder(connection), schema=SCHEMA)
    source = PostgresCandidateSource(repository, model=MODEL)
    coordinator = RetrievalCoordinator(source=source, policy=BY_CUE)
    route, answer, completeness = 0.0, 0.0, set()
    for one in questions:
        wordless = MemoryQuery(one.scope, limit=one.limit, embedding=one.embedding, as_of=one.as_of)
        near = await exact.nearest(wordless)
        seen = await repository.search(wordless, RETRIEVABLE_LAYERS, model=MODEL)
        by_vector = [hit for hit in seen.found if "vector" in hit.routes]
        by_vector.sort(key=lambda hit: -(hit.cosine or 0.0))
        route += recall((hit.record.record_id for hit in by_vector[: one.limit]), near, one.limit)
        result = await coordinator.retrieve(wordless)
        answer += recall((memory.record_id for memory in result.memories), near, one.limit)
        completeness.add(seen.completeness["vector"])
    return Found(route / len(questions), answer / len(questions), ", ".join(sorted(completeness)))
