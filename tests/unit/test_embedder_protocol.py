"""What callers get from an embedder: usable vectors, None, or an EmbedderError."""

import asyncio
import math
import pickle

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.embedders import (
    Embedder,
    EmbedderError,
    EmbedderUnavailable,
    QueryEmbedder,
    baseline_of,
    embed_query,
    embed_texts,
    usable,
)
from symfonic_pg.memory.errors import SymfonicError


class Fixed:
    """Answers with what it was made with."""

    model = "fixed"
    dimension = 2

    def __init__(self, answer):
        self.answer = answer

    async def embed(self, texts):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class FixedWithQuery(Fixed):
    baseline = 0.7

    async def embed_query(self, text):
        if isinstance(self.answer, Exception):
            raise self.answer
        return (0.0, 3.0)


def test_a_usable_vector_becomes_a_tuple_of_floats():
    assert usable([1, 2], 2) == (1.0, 2.0)
    assert usable(numpy.array([0.5, 0.25], dtype=numpy.float32), 2) == (0.5, 0.25)
    assert all(type(value) is float for value in usable(numpy.float32([1, 2]), 2))


@pytest.mark.parametrize(
    "vector",
    [(0.0, 0.0), (0.0, -0.0), (math.nan, 1.0), (math.inf, 1.0), (-math.inf, math.nan), (1e308, 1.7e308)],
)
def test_a_vector_without_a_direction_means_no_embedding(vector):
    assert usable(vector, 2) is None


def test_a_tiny_vector_still_has_a_direction():
    assert usable((1e-200, 0.0), 2) == (1e-200, 0.0)


@given(st.lists(st.floats(), min_size=1, max_size=8))
def test_a_usable_vector_is_finite_and_not_zero(vector):
    result = usable(vector, len(vector))
    expected = all(map(math.isfinite, vector)) and any(vector) and math.isfinite(math.hypot(*vector))
    assert (result is not None) == expected


def test_another_length_is_an_error_that_gives_both():
    with pytest.raises(EmbedderError, match="the embedder m returned 3 dimensions where 2 were promised"):
        usable((1.0, 2.0, 3.0), 2, model="m")


@pytest.mark.parametrize("vector", [None, 1.0, "ab", [None, 1.0], [[1.0], [2.0]]])
def test_something_else_than_numbers_is_an_error(vector):
    with pytest.raises(EmbedderError, match="not a vector"):
        usable(vector, 2)


async def test_texts_keep_their_places_and_unembeddable_ones_are_none():
    embedder = Fixed([(1.0, 0.0), (0.0, 0.0), (math.nan, 1.0), (0.0, 2.0)])
    assert await embed_texts(embedder, ["a", "", "b", "c"]) == [(1.0, 0.0), None, None, (0.0, 2.0)]


async def test_no_text_asks_nothing():
    assert await embed_texts(Fixed(RuntimeError("asked")), []) == []


@pytest.mark.parametrize("call", [lambda e: embed_texts(e, ["secret"]), lambda e: embed_query(e, "secret")])
@pytest.mark.parametrize("kind", [Fixed, FixedWithQuery])
async def test_whatever_an_embedder_raises_becomes_an_embedder_error_that_quotes_nothing(call, kind):
    with pytest.raises(EmbedderError, match="the embedder fixed failed: RuntimeError") as caught:
        await call(kind(RuntimeError("about secret")))
    assert "secret" not in str(caught.value)
    assert isinstance(caught.value.__cause__, RuntimeError)
    own = EmbedderUnavailable("down", model="fixed", retry_after=3.0)
    with pytest.raises(EmbedderUnavailable) as caught:
        await call(kind(own))
    assert caught.value is own


async def test_cancellation_is_not_an_embedder_error():
    class Hanging(Fixed):
        async def embed(self, texts):
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await embed_query(Hanging(None), "text")


async def test_a_wrong_number_of_vectors_is_an_error_that_gives_both():
    with pytest.raises(EmbedderError, match="returned 1 vectors for 2 texts"):
        await embed_texts(Fixed([(1.0, 0.0)]), ["a", "b"])


async def test_a_query_goes_through_embed_query_where_there_is_one():
    assert await embed_query(FixedWithQuery([(1.0, 0.0)]), "text") == (0.0, 3.0)
    assert await embed_query(Fixed([(1.0, 0.0)]), "text") == (1.0, 0.0)
    assert await embed_query(Fixed([(0.0, 0.0)]), "text") is None


def test_the_protocol_is_structural_and_baseline_and_query_are_optional():
    assert isinstance(Fixed(None), Embedder)
    assert not isinstance(Fixed(None), QueryEmbedder)
    assert isinstance(FixedWithQuery(None), QueryEmbedder)
    assert (baseline_of(Fixed(None)), baseline_of(FixedWithQuery(None))) == (0.0, 0.7)


def test_errors_share_the_root_and_survive_pickling():
    error = pickle.loads(pickle.dumps(EmbedderUnavailable("down", model="m", retry_after=2.5)))
    assert isinstance(error, EmbedderError)
    assert isinstance(error, SymfonicError)
    assert (str(error), error.model, error.retry_after) == ("down", "m", 2.5)
