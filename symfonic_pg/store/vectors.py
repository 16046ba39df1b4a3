"""The vectors that go with a write: made where a text has none yet, and missing where the embedder fails."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from symfonic_pg.embedders import Embedder, EmbedderError, EmbedText, embed_texts
from symfonic_pg.memory import MemoryRecord
from symfonic_pg.postgres.repository import MemoryRepository

logger = logging.getLogger("symfonic_pg.store")


async def needed_vectors(
    batch: Sequence[MemoryRecord], repository: MemoryRepository, embedder: Embedder, embed_text: EmbedText
) -> list[tuple[float, ...] | None]:
    """A vector for each record that needs one, None for the others; none at all where the embedder fails."""
    kept = await repository.find_embedded(batch, embedder.model, embed_text.version)
    wanted = [place for place in range(len(batch)) if place not in kept]
    vectors: list[tuple[float, ...] | None] = [None] * len(batch)
    try:
        made = await embed_texts(embedder, [embed_text(batch[place]) for place in wanted])
    except EmbedderError as exc:
        logger.warning("%d records stand as pending: %s", len(wanted), exc)
        return vectors
    for place, vector in zip(wanted, made, strict=True):
        vectors[place] = vector
    return vectors
