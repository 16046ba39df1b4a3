"""An embedder without a model: for tests, and where a text's own words are enough."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from symfonic_pg.memory.checks import whole
from symfonic_pg.memory.relevance import words

_GRAM = 3
_LONGEST_WORD = 64
_TEXTS_AT_A_STRETCH = 256


class HashingEmbedder:
    """Feature hashing of words and of the character trigrams inside them.

    The same text gives the same vector in every process, on every machine. Vectors have unit length; a
    text without a word gives the zero vector. Words weigh 1 + ln(count), and a word's trigrams together
    as much as the word itself, so that "refunds" is near "refund". Each feature adds to one dimension
    with a sign of its own, so that collisions cancel out on average and unrelated texts lie near 0
    (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", 2009).
    """

    baseline = 0.0

    def __init__(self, dimension: int = 384) -> None:
        self.dimension = whole(dimension, "dimension", 1)
        self.model = f"hashing-1-{dimension}"

    async def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """One vector per text; a long list gives way to other tasks now and then."""
        vectors = []
        for position, text in enumerate(texts, start=1):
            vectors.append(self.vector(text))
            if position % _TEXTS_AT_A_STRETCH == 0:
                await asyncio.sleep(0)
        return vectors

    def vector(self, text: str) -> tuple[float, ...]:
        """The vector of one text, for callers that are not async."""
        sums = [0.0] * self.dimension
        for word, count in Counter(words(text)).items():
            weight = 1.0 + math.log(count)
            for slot, value in _features(word, self.dimension):
                sums[slot] += weight * value
        norm = math.hypot(*sums)
        return tuple(value / norm for value in sums) if norm else tuple(sums)


@lru_cache(maxsize=8192)
def _features(word: str, dimension: int) -> tuple[tuple[int, float], ...]:
    """What one word adds: (dimension, signed weight) for itself and for each of its trigrams."""
    marked = f"<{word[:_LONGEST_WORD]}>"
    grams = [marked[start : start + _GRAM] for start in range(len(marked) - _GRAM + 1)]
    share = 1.0 / math.sqrt(len(grams))
    return (_feature("w" + word, dimension, 1.0), *(_feature("g" + gram, dimension, share) for gram in grams))


def _feature(name: str, dimension: int, weight: float) -> tuple[int, float]:
    # Not hash(): Python seeds it anew in every process.
    number = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")
    return (number >> 1) % dimension, weight if number & 1 else -weight
