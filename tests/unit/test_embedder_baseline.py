"""Measuring what cosine unrelated texts have."""

import math

import pytest

from symfonic_pg.embedders import EmbedderError, HashingEmbedder, measure_baseline


class Around:
    """Vectors that all lie at the same angle to each other, queries turned a little further."""

    model = "around"
    dimension = 6

    def __init__(self, shared, query_share=None):
        self.shared = shared
        self.query_share = shared if query_share is None else query_share

    def vector(self, text, shared):
        own = [0.0] * self.dimension
        own[1 + int(text) % 5] = math.sqrt(1 - shared)
        return [math.sqrt(shared), *own[1:]]

    async def embed(self, texts):
        return [self.vector(text, self.shared) if text else [0.0] * self.dimension for text in texts]


class AroundWithQuery(Around):
    async def embed_query(self, text):
        return self.vector(text, self.query_share)


async def test_it_is_the_median_cosine_of_different_texts():
    assert await measure_baseline(Around(0.7), list("01234")) == pytest.approx(0.7)


async def test_queries_are_compared_with_passages_as_a_recall_does():
    assert await measure_baseline(AroundWithQuery(0.25, 0.81), list("012")) == pytest.approx(0.45)


async def test_texts_without_an_embedding_are_left_out():
    assert await measure_baseline(Around(0.5), ["0", "", "1", "2"]) == pytest.approx(0.5)


@pytest.mark.parametrize("texts", [[], ["0"], ["0", ""]])
async def test_fewer_than_two_texts_are_no_measurement(texts):
    with pytest.raises(EmbedderError, match="at least two"):
        await measure_baseline(Around(0.5), texts)


async def test_it_stays_within_zero_and_one():
    assert await measure_baseline(Around(1.0), list("01")) == 0.99
    assert 0.0 <= await measure_baseline(HashingEmbedder()) < 0.1
