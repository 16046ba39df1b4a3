"""Measures the cosine that a model gives to texts that have nothing to do with each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import median

from symfonic_pg.embedders.errors import EmbedderError
from symfonic_pg.embedders.protocol import Embedder, embed_query, embed_texts
from symfonic_pg.memory.vectors import cosine

# One subject each, so that no two are about the same thing; several languages, as memories are.
UNRELATED_TEXTS = (
    "The refund was approved on Monday.",
    "Tidal energy depends on the moon.",
    "Her violin needs a new bow.",
    "Das Fenster im zweiten Stock klemmt.",
    "The server room was cooled to eighteen degrees.",
    "Los pingüinos anidan en la costa.",
    "Add two spoons of cumin and stir.",
    "The treaty was signed in 1648.",
    "Il treno per Bologna parte alle sette.",
    "Reset your password from the login page.",
    "A goalkeeper may not handle a back pass.",
    "La banque a relevé son taux directeur.",
    "Orchids like indirect light.",
    "The visa application takes six weeks.",
    "Parsing a date without a zone is a mistake.",
    "De fiets staat achter het station.",
)


async def measure_baseline(embedder: Embedder, texts: Sequence[str] = UNRELATED_TEXTS) -> float:
    """The median cosine over all pairs of different texts, in [0, 1): what to state as `baseline`.

    Each text is embedded both as a query and as a passage, and compared as a recall does it. `texts` have
    to be about different things; 10 to 40 of them are enough. EmbedderError if fewer than two have an
    embedding.
    """
    passages = await embed_texts(embedder, texts)
    queries = [await embed_query(embedder, text) for text in texts]
    cosines = [
        cosine(query, passage)
        for (left, query), (right, passage) in product(enumerate(queries), enumerate(passages))
        if left != right and query is not None and passage is not None
    ]
    if not cosines:
        raise EmbedderError(
            "a baseline needs at least two texts that have an embedding", model=embedder.model
        )
    return min(max(0.0, median(cosines)), 0.99)
