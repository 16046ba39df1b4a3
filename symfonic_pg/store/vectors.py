"""The vectors that go with a write: made where a text has none yet, and missing where the embedder fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from symfonic_pg.embedders import Embedder, EmbedderError, EmbedderUnavailable, embed_texts
from symfonic_pg.memory import MemoryRecord
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.store.settings import StoreSettings

logger = logging.getLogger("symfonic_pg.store")

# So many texts are given to the embedder in one call.
_AT_ONCE = 128


async def needed_vectors(
    batch: Sequence[MemoryRecord], repository: MemoryRepository, settings: StoreSettings
) -> list[tuple[float, ...] | None]:
    """A vector for each record that needs one, None for the others and where the embedder fails."""
    embedder, embed_text = settings.embedder, settings.embed_text
    assert embedder is not None
    kept = await repository.find_embedded(batch, embedder.model, embed_text.version)
    wanted = [place for place in range(len(batch)) if place not in kept]
    vectors: list[tuple[float, ...] | None] = [None] * len(batch)
    for start in range(0, len(wanted), _AT_ONCE):
        places = wanted[start : start + _AT_ONCE]
        texts = [embed_text(batch[place]) for place in places]
        try:
            made = await _embedded(embedder, texts, settings.embed_timeout)
        except EmbedderError as exc:
            logger.warning("%d records stand as pending: %s", len(wanted) - start, exc)
            break
        for place, vector in zip(places, made, strict=True):
            vectors[place] = vector
    return vectors


async def _embedded(
    embedder: Embedder, texts: Sequence[str], timeout: float | None
) -> list[tuple[float, ...] | None]:
    if timeout is None:
        return await embed_texts(embedder, texts)
    try:
        async with asyncio.timeout(timeout):
            return await embed_texts(embedder, texts)
    except TimeoutError as exc:
        raise EmbedderUnavailable(f"{embedder.model} gave no answer within {timeout:g} s") from exc
