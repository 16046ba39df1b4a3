"""What the tests of the coordinator share: sources and activations that say what they were told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from symfonic_pg.memory.activation import ActivationLog
from symfonic_pg.memory.coordinator import RetrievalCoordinator
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.relevance import RelevanceSignals
from symfonic_pg.memory.results import RetrievedMemory
from symfonic_pg.memory.sources import Candidate

NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SESSION, USER, ORG = "org:acme/user:u1/session:s1", "org:acme/user:u1", "org:acme"


def record(record_id, scope=SESSION, **changes):
    fields = {"layer": "semantic", "text": "a fact", "created_at": NOON}
    return MemoryRecord(record_id, scope, **{**fields, **changes})


def candidate(record_id, cue=0.5, *, pre_ranked=False, signals=None, **changes):
    return Candidate(record(record_id, **changes), signals or RelevanceSignals(cue=cue), pre_ranked)


class Source:
    """A source that returns what it was given."""

    def __init__(self, *candidates):
        self.candidates = candidates
        self.asked = []

    async def search(self, query, layers):
        self.asked.append((query, layers))
        return self.candidates


class Expansion:
    """An activation that finds what it was given."""

    def __init__(self, *found, log=None):
        self.found = found
        self.log = log or ActivationLog(degraded=True)
        self.asked = []

    async def expand(self, scope, seeds):
        self.asked.append((scope, list(seeds)))
        return self.found, self.log


def lit(record_id, score=0.5, **changes):
    return RetrievedMemory(record(record_id, **changes), score, via=("seed", record_id))


async def coordinate(*candidates, query=None, activation=None, **policy):
    coordinator = RetrievalCoordinator(
        source=Source(*candidates),
        policy=RetrievalPolicy(**policy),
        activation=activation,
        clock=lambda: NOON,
    )
    return await coordinator.coordinate(query or MemoryQuery(SESSION))


async def retrieve(*candidates, **options):
    return (await coordinate(*candidates, **options)).result


def ids(result):
    return [memory.record.record_id for memory in result.memories]


def reasons(result):
    return {record_id: str(reason) for record_id, reason in result.dropped}


class TalkativeSource(Source):
    def __init__(self, *candidates, dropped=(), sources=({}, ()), completeness=None):
        super().__init__(*candidates)
        self.told = {"dropped": dropped, "sources": sources, "completeness": completeness or {}}
        self.calls = []

    async def search(self, query, layers):
        self.calls.append("search")
        return await super().search(query, layers)

    def drain_dropped(self):
        self.calls.append("dropped")
        return self.told["dropped"]

    def drain_sources(self):
        self.calls.append("sources")
        return self.told["sources"]

    def drain_completeness(self):
        self.calls.append("completeness")
        return self.told["completeness"]
