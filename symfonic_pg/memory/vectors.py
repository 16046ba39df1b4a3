"""Embeddings as numbers: checked, scaled to unit length, rounded to half precision, compared."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from math import hypot, inf, isfinite
from numbers import Real
from operator import mul
from typing import Any

from symfonic_pg.memory.checks import broken_private
from symfonic_pg.memory.errors import MemoryContractError


def vector(value: object, field: str = "embedding") -> tuple[float, ...]:
    """A sequence of finite numbers, not all zero, as a tuple of floats; arrays give theirs by tolist()."""
    numbers = _numbers(value, field)
    # A length that is a number and not zero answers both questions for nearly every vector at once.
    if 0.0 < hypot(*numbers) < inf:
        return numbers
    if not all(map(isfinite, numbers)):
        first = next(place for place, number in enumerate(numbers) if not isfinite(number))
        raise broken_private(field, "of finite numbers", value, first)
    if not any(numbers):
        raise broken_private(field, "not all zero", value)
    return numbers


def unit(vector: Sequence[float]) -> tuple[float, ...]:
    """The vector of length 1 in the same direction.

    Raises MemoryContractError for one that is empty, all zero or not finite.
    """
    length = hypot(*vector)
    if not 1e-290 < length < 1e290:
        return _extreme_unit(vector, length)
    return tuple([number / length for number in vector])


def half(vector: Sequence[float]) -> tuple[float, ...]:
    """Each number rounded to the nearest IEEE 754 half, ties to even.

    Raises MemoryContractError for numbers that half precision cannot hold (65,520 and above).
    """
    halves = _halves(len(vector))
    try:
        return halves.unpack(halves.pack(*vector))
    except (OverflowError, struct.error):
        raise broken_private("embedding", "within the range of half precision", vector) from None


def half_text(vector: Sequence[float]) -> str:
    """The text of the vector's halves, such as `[0.5,-0.25]`, which pgvector reads back exactly.

    A half has 11 significant bits, which five decimal digits tell apart.
    """
    return "[" + ",".join([f"{number:.5g}" for number in half(vector)]) + "]"


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """The cosine of the angle between two vectors, in [-1, 1]; 0.0 for unequal lengths or a zero vector."""
    if len(a) != len(b):
        return 0.0
    lengths = hypot(*a) * hypot(*b)
    if not 1e-290 < lengths < 1e290:
        return cosine(unit(a), unit(b)) if any(a) and any(b) else 0.0
    product: float = sum(map(mul, a, b))
    return min(1.0, max(-1.0, product / lengths))


@lru_cache(maxsize=16)
def _halves(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}e")


def _numbers(value: object, field: str) -> tuple[float, ...]:
    given: Any = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(given, str | bytes | bytearray | Mapping | Set) or not (
        hasattr(given, "__len__") and hasattr(given, "__getitem__")
    ):
        raise broken_private(field, "a sequence of numbers", value)
    kinds = list(map(type, given))
    if kinds.count(float) == len(kinds):
        return tuple(given)
    if not set(kinds) <= {float, int}:
        for place, item in enumerate(given):
            if isinstance(item, bool) or not isinstance(item, Real):
                raise broken_private(field, "a sequence of numbers", value, place)
    try:
        return tuple(map(float, given))
    except OverflowError:
        raise broken_private(field, "of numbers that a float can hold", value) from None


def _extreme_unit(vector: Sequence[float], length: float) -> tuple[float, ...]:
    """The unit vector where squares over- or underflow: scaled by its largest number first."""
    largest = max(map(abs, vector), default=0.0)
    if not (largest > 0.0 and isfinite(largest) and all(map(isfinite, vector))):
        raise MemoryContractError(
            "an embedding must be finite and not all zero to have a direction", field="embedding"
        )
    return unit([number / largest for number in vector])
