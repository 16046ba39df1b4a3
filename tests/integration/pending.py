"""What the tests of embedding pending memories share: an embedder that can be told what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import MemoryRecord

DIMENSION = 32


class Embedder:
    """A hashing embedder that keeps the batches it was asked for, and misbehaves on request.

    `raises(texts)` gives an exception to raise, or None; `meanwhile(texts)` is awaited while the model
    "runs". The texts in `nothing` have no vector: a number stands in all its places.
    """

    def __init__(self, model: str = "test") -> None:
        self.model = model
        self.dimension = DIMENSION
        self.baseline = 0.0
        self.batches: list[list[str]] = []
        self.nothing: dict[str, float] = {}
        self.raises: Callable[[Sequence[str]], Exception | None] = lambda texts: None
        self.meanwhile: Callable[[Sequence[str]], Awaitable[object]] | None = None
        self._hashing = HashingEmbedder(DIMENSION)

    @property
    def asked(self) -> list[str]:
        """Every text it was asked for, in order."""
        return [text for batch in self.batches for text in batch]

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.batches.append(list(texts))
        error = self.raises(texts)
        if error is not None:
            raise error
        if self.meanwhile is not None:
            await self.meanwhile(texts)
        await asyncio.sleep(0)
        return [
            (self.nothing[text],) * DIMENSION if text in self.nothing else self._hashing.vector(text)
            for text in texts
        ]

    def vector(self, text: str) -> tuple[float, ...]:
        """What it makes of a text."""
        return self._hashing.vector(text)


def records(count: int, scope: str = "org:acme", name: str = "r") -> list[MemoryRecord]:
    """Memories r0, r1, … each with a text of its own."""
    return [
        MemoryRecord(f"{name}{number}", scope, "semantic", f"text {name}{number}") for number in range(count)
    ]


async def value(dsn: str, query: str, *parameters: object) -> Any:
    """One value of the database, from outside."""
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query, *parameters)
    finally:
        await connection.close()


async def leases(dsn: str) -> int:
    """How many rows there are of memories that somebody embeds or could not embed."""
    return int(await value(dsn, "SELECT count(*) FROM symfonic.embedding_leases"))


async def stale(dsn: str) -> int:
    """How many vectors are of a text that their memory has no more."""
    return int(
        await value(
            dsn,
            "SELECT count(*) FROM symfonic.embeddings e JOIN symfonic.memories m USING (tenant_id, memory_id)"
            " WHERE e.content_hash <> m.content_hash",
        )
    )
