"""Vectors: unit length, half precision, the text that pgvector reads, and the cosine."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.vectors import cosine, half, half_text, unit

quick = settings(deadline=None, max_examples=200)

numbers = st.floats(allow_nan=False, allow_infinity=False)
vectors = st.lists(numbers, min_size=1, max_size=20).filter(any)


@quick
@given(vectors)
def test_a_unit_vector_has_length_one_and_the_same_direction(vector):
    scaled = unit(vector)
    assert math.hypot(*scaled) == pytest.approx(1.0, abs=1e-12)
    largest = max(range(len(vector)), key=lambda place: abs(vector[place]))
    assert math.copysign(1.0, scaled[largest]) == math.copysign(1.0, vector[largest])
    assert abs(scaled[largest]) == max(map(abs, scaled))


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        ([3, 4], (0.6, 0.8)),
        ([1e-320, 0], (1.0, 0.0)),
        ([1e308, 1e308], (2**-0.5, 2**-0.5)),
        ([-2.0], (-1.0,)),
    ],
)
def test_units_of_any_magnitude(vector, expected):
    assert unit(vector) == pytest.approx(expected)


@pytest.mark.parametrize("vector", [[], [0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [1.0, math.nan]])
def test_what_has_no_direction_is_refused(vector):
    with pytest.raises(MemoryContractError):
        unit(vector)


def _finite_halves():
    for bits in range(1 << 16):
        (number,) = struct.unpack("<e", struct.pack("<H", bits))
        if math.isfinite(number):
            yield number


def test_the_text_of_every_half_reads_back_exactly():
    halves = list(_finite_halves())
    texts = half_text(halves)[1:-1].split(",")
    # pgvector reads a float first and rounds that to a half.
    read = struct.unpack(f"<{len(texts)}f", struct.pack(f"<{len(texts)}f", *map(float, texts)))
    assert half(read) == tuple(halves)


def test_halves_are_rounded_to_nearest_ties_to_even():
    assert half([2049.0, 2051.0, 0.1, 1e-9]) == (2048.0, 2052.0, 0.0999755859375, 0.0)
    assert half_text([1, -0.25, 0.1]) == "[1,-0.25,0.099976]"


@pytest.mark.parametrize("vector", [[65520.0], [-1e300], ["a"]])
def test_what_no_half_can_hold_is_refused(vector):
    with pytest.raises(MemoryContractError):
        half(vector)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 0], [1, 0], 1.0),
        ([1, 0], [0, 1], 0.0),
        ([1, 0], [-2, 0], -1.0),
        ([1, 1], [1, 0], 2**-0.5),
        ([1e200, 0], [1e200, 1e200], 2**-0.5),
        ([1e-200, 0], [1e-200, 1e-200], 2**-0.5),
        ([1, 0], [1, 0, 0], 0.0),
        ([0, 0], [1, 0], 0.0),
        ([], [], 0.0),
    ],
)
def test_cosines(a, b, expected):
    assert cosine(a, b) == pytest.approx(expected)


@quick
@given(vectors)
def test_the_cosine_ignores_lengths_and_stays_within_its_bounds(vector):
    other = [number / 4 for number in reversed(vector)]
    assert -1.0 <= cosine(vector, other) <= 1.0
    assert cosine(vector, vector) == pytest.approx(1.0)
    assert cosine(unit(vector), other) == pytest.approx(cosine(other, vector), abs=1e-9)
