"""What an embedder is, and the one way to ask it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from symfonic_pg.embedders.errors import EmbedderError

Vector: TypeAlias = Sequence[float]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of one model, one length.

    Two members are optional: `baseline: float`, the cosine that unrelated texts have under this model
    (see `baseline_of`), and `async embed_query(text)` for a model that reads queries and passages
    differently (see `embed_query`). A zero or non-finite vector says that a text has no embedding.
    """

    @property
    def model(self) -> str:
        """The name under which the vectors are stored; vectors of two models are never compared."""

    @property
    def dimension(self) -> int:
        """The length of every vector."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text, in the order of the texts."""


@runtime_checkable
class QueryEmbedder(Embedder, Protocol):
    """An embedder that reads a query in its own way."""

    async def embed_query(self, text: str) -> Vector:
        """The vector of one query."""


def baseline_of(embedder: Embedder) -> float:
    """The cosine that unrelated texts have under this embedder, 0.0 where it states none."""
    return float(getattr(embedder, "baseline", None) or 0.0)


def usable(vector: Vector, dimension: int, *, model: str | None = None) -> tuple[float, ...] | None:
    """The vector as a tuple of floats, or None where it says that the text has no embedding.

    None for a zero vector and for one with a NaN or an infinity. EmbedderError for another length than
    `dimension` and for anything that is not a sequence of numbers.
    """
    values = _floats(vector, model)
    check_dimension(values, dimension, model)
    # hypot scales, so tiny values are not lost; one NaN or infinity makes the whole of it non-finite.
    return values if 0.0 < math.hypot(*values) < math.inf else None


async def embed_texts(embedder: Embedder, texts: Sequence[str]) -> list[tuple[float, ...] | None]:
    """One usable vector, or None, per text. Whatever the embedder raises becomes an EmbedderError."""
    if not texts:
        return []
    try:
        vectors = list(await embedder.embed(texts))
    except EmbedderError:
        raise
    except Exception as exc:
        raise _foreign(embedder, exc) from exc
    check_count(vectors, len(texts), embedder.model)
    return [usable(vector, embedder.dimension, model=embedder.model) for vector in vectors]


async def embed_query(embedder: Embedder, text: str) -> tuple[float, ...] | None:
    """The usable vector of a query, or None; by `embed_query` where the embedder has it."""
    if not isinstance(embedder, QueryEmbedder):
        return (await embed_texts(embedder, [text]))[0]
    try:
        vector = await embedder.embed_query(text)
    except EmbedderError:
        raise
    except Exception as exc:
        raise _foreign(embedder, exc) from exc
    return usable(vector, embedder.dimension, model=embedder.model)


def check_count(vectors: Sequence[object], count: int, model: str | None) -> None:
    """EmbedderError unless there is one vector for each of `count` texts."""
    if len(vectors) != count:
        raise EmbedderError(f"{_name(model)} returned {len(vectors)} vectors for {count} texts", model=model)


def check_dimension(vector: Vector, dimension: int, model: str | None) -> None:
    """EmbedderError unless the vector has the length that was promised."""
    if len(vector) != dimension:
        raise EmbedderError(
            f"{_name(model)} returned {len(vector)} dimensions where {dimension} were promised", model=model
        )


def _floats(vector: Any, model: str | None) -> tuple[float, ...]:
    # numpy and torch give Python floats at once through tolist(), ten times faster than one by one.
    to_list = getattr(vector, "tolist", None)
    try:
        return tuple(map(float, vector if to_list is None else to_list()))
    except (TypeError, ValueError, OverflowError) as exc:
        raise EmbedderError(
            f"{_name(model)} returned something that is not a vector: {type(vector).__name__}", model=model
        ) from exc


def _foreign(embedder: Embedder, exc: Exception) -> EmbedderError:
    # Only the type: the message of somebody else's exception may quote the text.
    return EmbedderError(f"{_name(embedder.model)} failed: {type(exc).__name__}", model=embedder.model)


def _name(model: str | None) -> str:
    return f"the embedder {model}" if model else "the embedder"
