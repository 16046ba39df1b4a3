"""Containment and half precision mean in Python what they mean in PostgreSQL."""

from __future__ import annotations

import json
import math
import random
import struct

import psycopg
import pytest

from symfonic_pg.memory.documents import contains
from symfonic_pg.memory.vectors import half, half_text, unit

SCALARS = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.0,
    0.5,
    -0.0,
    1e23,
    10**23,
    2**53 + 1,
    float(2**53),
    "",
    "a",
    "1",
    "é",
]


def _value(chance: random.Random, depth: int) -> object:
    kind = chance.random()
    if depth == 0 or kind < 0.4:
        return chance.choice(SCALARS)
    if kind < 0.7:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice("ab"): _value(chance, depth - 1) for _ in range(chance.randrange(3))}


def _part(chance: random.Random, value: object) -> object:
    """Something that the value may well contain: a piece of it, now and then changed."""
    if chance.random() < 0.25:
        return _value(chance, 1)
    if isinstance(value, dict):
        return {key: _part(chance, item) for key, item in value.items() if chance.random() < 0.7}
    if isinstance(value, list):
        return [_part(chance, chance.choice(value)) for _ in range(chance.randrange(len(value) + 2)) if value]
    return value


def test_containment_agrees_with_jsonb(database: str) -> None:
    chance = random.Random(20240601)
    wholes = [_value(chance, 3) for _ in range(4000)]
    pairs = [(whole, _part(chance, whole)) for whole in wholes]
    with psycopg.connect(database) as connection:
        answers = connection.execute(
            "SELECT whole::jsonb @> part::jsonb FROM unnest(%s::text[], %s::text[])"
            " WITH ORDINALITY AS pairs(whole, part, place) ORDER BY place",
            ([json.dumps(whole) for whole, _ in pairs], [json.dumps(part) for _, part in pairs]),
        ).fetchall()
    expected = [answer for (answer,) in answers]
    assert [contains(whole, part) for whole, part in pairs] == expected
    assert 0.2 < sum(expected) / len(expected) < 0.8


def test_pgvector_reads_the_text_of_every_half_exactly(database: str) -> None:
    bits = struct.unpack("<65536e", struct.pack("<65536H", *range(1 << 16)))
    halves = [number for number in bits if math.isfinite(number)]
    with psycopg.connect(database) as connection:
        for start in range(0, len(halves), 16_000):
            given = halves[start : start + 16_000]
            (read,) = connection.execute(
                "SELECT %s::halfvec::real[]::float8[]", (half_text(given),)
            ).fetchone()
            assert read == given


@pytest.mark.parametrize("seed", range(3))
def test_pgvector_rounds_to_the_same_halves(database: str, seed: int) -> None:
    chance = random.Random(seed)
    vector = unit([chance.gauss(0, 1) for _ in range(1000)])
    with psycopg.connect(database) as connection:
        given = "[" + ",".join(map(repr, vector)) + "]"
        (read,) = connection.execute("SELECT %s::halfvec::real[]::float8[]", (given,)).fetchone()
    assert read == pytest.approx(half(vector), abs=2**-11 * max(map(abs, vector)))
