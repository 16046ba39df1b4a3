"""Any model of the library sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from symfonic_pg.embedders.batching import Batching, Send
from symfonic_pg.embedders.protocol import Vector
from symfonic_pg.embedders.worker import Worker
from symfonic_pg.memory.checks import number
from symfonic_pg.memory.errors import MemoryContractError


class SentenceTransformerEmbedder:
    """A SentenceTransformer in this process, in a thread of its own.

    `source` is a model's name or path, or a SentenceTransformer that is loaded already. Loading happens
    here and takes seconds (and may fetch the weights). `query_prompt` and `passage_prompt` are put in
    front of the text; None leaves it to the prompts that come with the model, "" means no prompt.
    `name` is what the vectors are stored under: another prompt or another truncation needs another name.
    Needs the extra `sentence-transformers`. Further options go to the library's constructor.
    """

    def __init__(
        self,
        source: Any,
        *,
        name: str | None = None,
        baseline: float = 0.0,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        batch_size: int = 32,
        max_characters: int = 8_000,
        **options: Any,
    ) -> None:
        if name is None and not isinstance(source, str):
            raise MemoryContractError(
                "a loaded model needs name=, under which its vectors are stored", field="name"
            )
        self._transformer = _load(source, options) if isinstance(source, str) else source
        self.model = source if name is None else name
        self.baseline = number(baseline, "baseline", 0.0, 1.0)
        self._query_prompt = query_prompt
        self._passage_prompt = passage_prompt
        self._batch_size = batch_size
        self._worker = Worker("sentence-transformers")
        # Asked of the model itself: the method that tells the dimension has changed its name.
        self.dimension = len(self._passages(["dimension"])[0])
        self._batching = Batching(
            self.model, self.dimension, size=batch_size, longest=max_characters, concurrency=1, timeout=None
        )

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text, read as a passage."""
        return await self._batching.embed(texts, self._in_thread(self._passages))

    async def embed_query(self, text: str) -> Vector:
        """The vector of one text, read as a query."""
        return await self._batching.embed_one(text, self._in_thread(self._queries))

    def _in_thread(self, encode: Callable[[Sequence[str]], Sequence[Vector]]) -> Send:
        async def send(texts: Sequence[str]) -> Sequence[Vector]:
            return await self._worker.run(lambda: encode(texts))

        return send

    def _passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return self._encode("encode_document", ("document", "passage"), self._passage_prompt, texts)

    def _queries(self, texts: Sequence[str]) -> Sequence[Vector]:
        return self._encode("encode_query", ("query",), self._query_prompt, texts)

    def _encode(
        self, method: str, names: tuple[str, ...], prompt: str | None, texts: Sequence[str]
    ) -> Sequence[Vector]:
        prompts = {"prompt": prompt} if prompt is not None else {}
        encode = getattr(self._transformer, method, None)
        if encode is None:
            # Before version 5 there is encode alone, and the model's prompts are chosen by name.
            encode = self._transformer.encode
            known = getattr(self._transformer, "prompts", None) or {}
            chosen = next((name for name in names if name in known), None)
            if prompt is None and chosen is not None:
                prompts = {"prompt_name": chosen}
        vectors: Sequence[Vector] = encode(
            list(texts),
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
            **prompts,
        ).tolist()
        return vectors


def _load(name: str, options: dict[str, Any]) -> Any:
    try:
        library = import_module("sentence_transformers")
    except ImportError as exc:
        raise ImportError(
            "SentenceTransformerEmbedder needs the package sentence-transformers:"
            " pip install 'symfonic-pg[sentence-transformers]'",
            name="sentence_transformers",
        ) from exc
    return library.SentenceTransformer(name, **options)
