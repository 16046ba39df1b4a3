"""The embedder without a model: stable, sensible and quick."""

import asyncio
import math
import os
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.embedders import HashingEmbedder, embed_query, embed_texts
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.vectors import cosine


def similarity(left, right, dimension=384):
    embedder = HashingEmbedder(dimension)
    return cosine(embedder.vector(left), embedder.vector(right))


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_the_same_text_gives_the_same_vector_in_every_process(seed):
    text = "Refund policy: größe, 東京, e\u0301"
    program = (
        "import sys; from symfonic_pg.embedders import HashingEmbedder;"
        "sys.stdout.write(repr(HashingEmbedder(64).vector(sys.argv[1])))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program, text],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    assert printed == repr(HashingEmbedder(64).vector(text))


def test_the_vectors_of_today_are_the_vectors_of_tomorrow():
    """Stored vectors outlive a release: another hash would need another model name."""
    assert HashingEmbedder(384).model == "hashing-1-384"
    vector = HashingEmbedder(8).vector("refund policy")
    assert vector == pytest.approx(FROZEN, abs=1e-12)


WORD, TRIGRAM = 0.5773502691896257, 0.23570226039551587
FROZEN = (WORD, 0.0, -WORD, TRIGRAM, 2 * TRIGRAM, 0.0, TRIGRAM, 0.0)


@given(st.text(max_size=60), st.sampled_from([2, 16, 384]))
def test_a_vector_has_unit_length_or_is_zero(text, dimension):
    vector = HashingEmbedder(dimension).vector(text)
    assert len(vector) == dimension
    assert math.hypot(*vector) == pytest.approx(1.0) or not any(vector)


@pytest.mark.parametrize("text", ["", "  ", "?!… 🙂"])
async def test_a_text_without_a_word_has_no_embedding(text):
    assert not any(HashingEmbedder().vector(text))
    assert await embed_query(HashingEmbedder(), text) is None


def test_order_case_and_punctuation_change_nothing():
    assert similarity("Refund policy, EU!", "eu POLICY refund") == pytest.approx(1.0)


def test_shared_words_and_shared_stems_bring_texts_together():
    unrelated = similarity("the violin needs a new bow", "refund policy for customers")
    stems = similarity("refunds and policies for customers", "refund policy for a customer")
    same_words = similarity("refund policy for EU customers", "refund policy for customers")
    assert abs(unrelated) < 0.15
    assert unrelated + 0.2 < stems < same_words < 1.0


def test_a_repeated_word_weighs_more_but_not_in_proportion():
    once, many = (
        similarity("refund violin", "refund"),
        similarity("refund refund refund refund violin", "refund"),
    )
    assert once < many < 0.99


async def test_embed_gives_one_vector_a_text_and_lets_others_run():
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticker = asyncio.create_task(tick())
    texts = [f"text number {number}" for number in range(600)]
    vectors = await embed_texts(HashingEmbedder(16), texts)
    ticker.cancel()
    assert len(vectors) == 600
    assert ticks >= 2


def test_a_thousand_short_texts_take_well_under_a_second():
    embedder = HashingEmbedder()
    texts = [
        f"customer {number} asked about refund {number} for order {number * 7}" for number in range(1000)
    ]
    begun = time.process_time()
    for text in texts:
        embedder.vector(text)
    assert time.process_time() - begun < 1.0


def test_a_very_long_word_is_no_trap():
    begun = time.process_time()
    assert any(HashingEmbedder().vector("x" * 100_000))
    assert time.process_time() - begun < 1.0


@pytest.mark.parametrize("dimension", [0, -1, 1.5, True])
def test_a_dimension_that_cannot_be_is_refused(dimension):
    with pytest.raises(MemoryContractError):
        HashingEmbedder(dimension)
