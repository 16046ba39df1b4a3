"""What every store's candidate source has in common: from observations to candidates, and their tallies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.checks import broken, share, whole
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.observations import MAX_FANOUT, Observation, Observations
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.signals import observed_signals
from symfonic_pg.memory.sources import Candidate, trusted_candidate
from symfonic_pg.memory.vectors import vector
from symfonic_pg.memory.window import ConversationTurn

logger = logging.getLogger("symfonic_pg.memory")

_NOTHING = Observations()


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model whose vectors a store keeps: its number there, its name, its vectors' length, its baseline.

    `baseline` is the cosine of unrelated texts, 0.0 where nobody knows it.
    """

    number: int
    name: str
    dimension: int
    baseline: float = 0.0


class QueryEmbedder(Protocol):
    """As much of an embedder as a search needs; `embed_query(text)` is used where it has one."""

    @property
    def model(self) -> str:
        """The name of its model."""

    async def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        """One vector for each text."""


class ObservingRepository(Protocol):
    """As much of a repository as a candidate source needs."""

    async def search(
        self,
        query: MemoryQuery,
        layers: frozenset[MemoryLayer],
        *,
        model: str | None = None,
        fanout: int = 50,
    ) -> Observations:
        """What the store saw."""

    async def observe(
        self, query: MemoryQuery, record_ids: Sequence[str], *, model: str | None = None
    ) -> list[Observation]:
        """The same about named records."""

    async def model(self, name: str) -> EmbeddingModel | None:
        """The model of this name, None where its vectors are not kept."""

    async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str]) -> Sequence[Association]:
        """The visible edges out of these records."""

    async def hops(
        self, scope: MemoryScope, record_id: str, record_ids: Sequence[str], max_hops: int
    ) -> Mapping[str, int]:
        """The fewest edges from one record to each of the others."""

    async def recent(self, scope: MemoryScope, limit: int) -> Sequence[ConversationTurn]:
        """The last turns at exactly that scope."""


class ObservingSource:
    """The candidate, association and conversation source of a repository that reports observations.

    `embedder` embeds a cue that comes without an embedding; `model`, the embedder's unless given, names the
    vectors to compare with. `fanout` is the most that one route takes from one level, never under the query's
    limit. `half_life` is that of recency, one for all layers or one for each. `cosine_share` in [0, 1] is
    what the cosine contributes to the cue; terms contribute the rest.

    One object serves any number of tasks: what a search leaves to be drained is set in the step in which it
    returns, so a caller that drains before it awaits anything gets its own search's.
    """

    def __init__(
        self,
        repository: ObservingRepository,
        *,
        embedder: QueryEmbedder | None = None,
        model: str | None = None,
        fanout: int = 50,
        half_life: timedelta | Mapping[MemoryLayer, timedelta] = timedelta(days=7),
        cosine_share: float = 0.5,
        embed_timeout: float | None = None,
    ) -> None:
        if embedder is not None and model is not None and model != embedder.model:
            raise broken("model", f"the embedder's, {embedder.model!r}", model)
        self.repository = repository
        self.embedder = embedder
        self.model = model if embedder is None else embedder.model
        self.fanout = whole(fanout, "fanout", 1, MAX_FANOUT)
        self.half_life = _half_life(half_life)
        self.cosine_share = share(cosine_share, "cosine_share")
        self.embed_timeout = embed_timeout
        self._undrained = _NOTHING

    @property
    def borrowed(self) -> bool:
        """Whether the repository runs on a connection that is not its own."""
        return bool(getattr(self.repository, "borrowed", False))

    async def search(self, query: MemoryQuery, layers: frozenset[MemoryLayer]) -> list[Candidate]:
        """A candidate for everything that any route found; MemoryUnavailable from a store out of reach."""
        self._undrained = _NOTHING
        settled = query.at(datetime.now(UTC))
        model = await self._compared_with(settled)
        asked = await self._embedded(settled, model)
        seen = await self.repository.search(asked, layers, model=self.model, fanout=self.fanout)
        if self._embeds(settled) and asked.embedding is None:
            seen = replace(seen, unavailable=tuple(dict.fromkeys((*seen.unavailable, "vector"))))
        candidates = self._candidates(seen.found, asked, model)
        self._undrained = seen
        return candidates

    async def observe(self, query: MemoryQuery, record_ids: Sequence[str]) -> list[Candidate]:
        """What a search would say of these records, found or not; those not visible are left out."""
        settled = query.at(datetime.now(UTC))
        model = await self._compared_with(settled)
        asked = await self._embedded(settled, model)
        seen = await self.repository.observe(asked, record_ids, model=self.model)
        return self._candidates(seen, asked, model)

    def drain_dropped(self) -> Iterable[tuple[str, str]]:
        """Nothing: such a store refuses no record that it found."""
        return ()

    def drain_sources(self) -> tuple[Mapping[str, int], tuple[str, ...]]:
        """How many each route of the last search found, and the routes that could not run."""
        seen = self._undrained
        self._undrained = replace(seen, routes={}, unavailable=())
        return seen.routes, seen.unavailable

    def drain_completeness(self) -> Mapping[str, str]:
        """How sure each route of the last search is: exact, approximate or truncated."""
        seen, self._undrained = self._undrained, _NOTHING
        return seen.completeness

    async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str]) -> Sequence[Association]:
        """Every visible edge out of these memories."""
        return await self.repository.neighbours(scope, record_ids)

    async def hops(
        self, scope: MemoryScope, record_id: str, record_ids: Sequence[str], max_hops: int
    ) -> Mapping[str, int]:
        """The fewest visible edges, in either direction, from one memory to each of the others."""
        return await self.repository.hops(scope, record_id, record_ids, max_hops)

    async def recent(self, scope: MemoryScope, limit: int) -> Sequence[ConversationTurn]:
        """The last turns at exactly that scope, oldest first."""
        return await self.repository.recent(scope, limit)

    def _embeds(self, query: MemoryQuery) -> bool:
        return self.embedder is not None and query.embedding is None and not query.asks_nothing

    async def _compared_with(self, query: MemoryQuery) -> EmbeddingModel | None:
        """The model whose vectors the query is compared with, where there is a comparison to make."""
        if self.model is None or not (query.embedding or self._embeds(query)):
            return None
        return await self.repository.model(self.model)

    async def _embedding(self, cue: str, embedder: QueryEmbedder) -> Sequence[float]:
        if self.embed_timeout is None:
            return await _embedding(embedder, cue)
        async with asyncio.timeout(self.embed_timeout):
            return await _embedding(embedder, cue)

    async def _embedded(self, query: MemoryQuery, model: EmbeddingModel | None) -> MemoryQuery:
        """The query with its cue embedded, where there is an embedder and its vector can be compared."""
        if self.embedder is None or model is None or not self._embeds(query):
            return query
        try:
            embedding = vector(await self._embedding(query.cue, self.embedder))
        except MemoryContractError:
            # A zero or non-finite vector is how an embedder says that it has none for this text.
            return query
        except Exception as exc:  # whatever an embedder raises: the other routes still answer
            logger.warning("the cue could not be embedded: %s", type(exc).__name__)
            return query
        if len(embedding) != model.dimension:
            logger.warning(
                "the embedder gave %d dimensions where %s has %d", len(embedding), model.name, model.dimension
            )
            return query
        return replace(query, embedding=embedding)

    def _candidates(
        self, found: Iterable[Observation], query: MemoryQuery, model: EmbeddingModel | None
    ) -> list[Candidate]:
        assert query.as_of is not None
        baseline = 0.0 if model is None else model.baseline
        return [
            trusted_candidate(
                observation.record,
                observed_signals(
                    observation,
                    query,
                    moment=query.as_of,
                    baseline=baseline,
                    half_life=self.half_life,
                    cosine_share=self.cosine_share,
                ),
            )
            for observation in found
        ]


def _half_life(value: Any) -> timedelta | Mapping[MemoryLayer, timedelta]:
    """One positive half-life, or one for each of some layers."""
    for one in value.values() if isinstance(value, Mapping) else [value]:
        if not isinstance(one, timedelta) or one <= timedelta(0):
            raise broken("half_life", "a positive timedelta, or one for each layer", value)
    return value  # type: ignore[no-any-return]


async def _embedding(embedder: Any, text: str) -> Sequence[float]:
    embed_query = getattr(embedder, "embed_query", None)
    if embed_query is not None:
        answer: Sequence[float] = await embed_query(text)
        return answer
    answers: Sequence[Sequence[float]] = await embedder.embed([text])
    return answers[0]
