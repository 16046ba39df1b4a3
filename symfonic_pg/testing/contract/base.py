"""What a behaviour of the contract is, and the few words the behaviours are written in."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from inspect import signature
from math import isclose
from typing import Any, Protocol
from uuid import uuid4

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.observations import Observation, Observations
from symfonic_pg.memory.observing import EmbeddingModel, ObservingRepository
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord, RememberReport
from symfonic_pg.memory.requests import LoadItem, PageEnd
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.window import ConversationTurn

# The moment of every query that does not say otherwise, and of every record.
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)

Vector = Sequence[float]


class ContractRepository(ObservingRepository, Protocol):
    """The verbs that the contract is about."""

    async def get(self, scope: MemoryScope, record_ids: Iterable[str]) -> Sequence[MemoryRecord]: ...

    async def count(self, scope: MemoryScope) -> int: ...

    async def remember(
        self,
        records: Iterable[MemoryRecord],
        embeddings: Iterable[Vector | None] | None = None,
        *,
        model: str | None = None,
        text_version: str = "",
    ) -> RememberReport: ...

    async def load(
        self,
        items: Iterable[LoadItem] | AsyncIterable[LoadItem],
        *,
        model: str | None = None,
        text_version: str = "",
        batch_size: int = ...,
    ) -> RememberReport: ...

    async def register_model(self, name: str, dimension: int, baseline: float = 0.0) -> EmbeddingModel: ...

    async def models(self) -> Sequence[EmbeddingModel]: ...

    async def associate(self, scope: MemoryScope, edges: Iterable[Association]) -> int: ...

    async def dissociate(self, scope: MemoryScope, edges: Iterable[Association]) -> int: ...

    async def append_turns(self, scope: MemoryScope, turns: Iterable[ConversationTurn]) -> int: ...

    async def reinforce(self, scope: MemoryScope, record_ids: Iterable[str]) -> int: ...

    async def forget(self, scope: MemoryScope, record_ids: Iterable[str]) -> int: ...

    async def move(self, scope: MemoryScope, record_ids: Iterable[str], to: MemoryScope) -> int: ...

    async def erase(self, scope: MemoryScope) -> int: ...

    async def list(
        self,
        scope: MemoryScope,
        *,
        layers: Iterable[MemoryLayer] = ...,
        kind: str | None = None,
        where: Mapping[str, Any] | None = None,
        exactly: bool = False,
        limit: int = 100,
        after: PageEnd | None = None,
    ) -> Sequence[MemoryRecord]: ...


Another = Callable[[], Awaitable[ContractRepository]]
Check = Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One thing that every repository does.

    Calling it with a repository raises AssertionError where it does something else. No empty store is
    needed: each run makes up its own tenant and model names. `another` makes one more repository on the same
    storage, for a behaviour that `needs_another`; without it the one there is plays both parts.
    """

    name: str
    check: Check

    @property
    def needs_another(self) -> bool:
        """Whether a second repository on the same storage is needed."""
        return "another" in signature(self.check).parameters

    async def __call__(self, repository: ContractRepository, another: Another | None = None) -> None:
        async def itself() -> ContractRepository:
            return repository

        await (self.check(repository, another or itself) if self.needs_another else self.check(repository))

    def __str__(self) -> str:
        return self.name


BEHAVIOURS: list[Behaviour] = []


def behaviour(check: Check) -> Check:
    """Add a function to the contract, under its own name."""
    BEHAVIOURS.append(Behaviour(check.__name__, check))
    return check


def tenant(name: str = "acme") -> MemoryScope:
    """A root that no other run has used."""
    return MemoryScope.of(("org", f"{name}-{uuid4().hex[:12]}"))


def fresh(name: str) -> str:
    """A name that no other run has used."""
    return f"{name}-{uuid4().hex[:12]}"


def note(scope: MemoryScope, record_id: str, text: str = "a plain note", **fields: Any) -> MemoryRecord:
    """A record of NOW in the semantic layer, unless the fields say otherwise."""
    defaults: dict[str, Any] = {"layer": MemoryLayer.SEMANTIC, "created_at": NOW, "updated_at": NOW}
    return MemoryRecord(record_id, scope, text=text, **{**defaults, **fields})


def ask(scope: MemoryScope, cue: str = "", **fields: Any) -> MemoryQuery:
    """A query at NOW, unless the fields say otherwise."""
    return MemoryQuery(scope, cue, **{"as_of": NOW, **fields})


@dataclass(frozen=True, slots=True)
class Seen:
    """The observations of one search, by record_id."""

    observations: Observations

    @property
    def ids(self) -> set[str]:
        """What was found at all."""
        return {observation.record.record_id for observation in self.observations.found}

    def __getitem__(self, record_id: str) -> Observation:
        for one in self.observations.found:
            if one.record.record_id == record_id:
                return one
        raise AssertionError(f"{record_id!r} was not found")

    def by(self, route: str) -> set[str]:
        """What one route found."""
        return {one.record.record_id for one in self.observations.found if route in one.routes}


async def search(
    repository: ContractRepository,
    query: MemoryQuery,
    layers: Iterable[MemoryLayer] = RETRIEVABLE_LAYERS,
    **options: Any,
) -> Seen:
    """One search, whose books are checked at once: tallies, routes and completeness belong together."""
    seen = Seen(await repository.search(query, frozenset(layers), **options))
    observations = seen.observations
    assert len(seen.ids) == len(observations.found), "a record was found twice"
    assert all(one.routes for one in observations.found), "a record was found by no route"
    tallied = {route: len(seen.by(route)) for route in observations.routes}
    assert tallied == dict(observations.routes), (tallied, observations.routes)
    assert {route for one in observations.found for route in one.routes} <= set(observations.routes)
    assert set(observations.completeness) == set(observations.routes)
    assert set(observations.completeness.values()) <= {"exact", "approximate", "truncated"}
    assert not set(observations.unavailable) & set(observations.routes)
    return seen


async def ids_at(repository: ContractRepository, scope: MemoryScope) -> set[str]:
    """The ids of all that is visible at a scope."""
    return {record.record_id for record in await repository.list(scope, limit=1000)}


def ids(records: Iterable[MemoryRecord]) -> list[str]:
    """Their ids, in their order."""
    return [record.record_id for record in records]


def near(value: float | None, expected: float, *, within: float = 1e-5) -> bool:
    """Whether a number is the expected one, up to rounding."""
    return value is not None and isclose(value, expected, rel_tol=0.0, abs_tol=within)


@contextmanager
def refused(*fragments: str, without: Iterable[str] = ()) -> Iterator[None]:
    """The block raises MemoryContractError, whose message holds the fragments and none of `without`."""
    try:
        yield
    except MemoryContractError as error:
        message = str(error)
        missing = [fragment for fragment in fragments if fragment not in message]
        assert not missing, f"{missing} not in {message!r}"
        leaked = [secret for secret in without if secret in message]
        assert not leaked, f"{message!r} gives away {leaked}"
    else:
        raise AssertionError("no MemoryContractError was raised")
