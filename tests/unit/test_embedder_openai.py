"""The HTTP adapter's requests, over a transport inside this process."""

import json

import httpx
import pytest

from symfonic_pg.embedders import EmbedderError, EmbedderUnavailable, OpenAIEmbedder, Retry
from symfonic_pg.memory.errors import MemoryContractError


class Endpoint:
    """Keeps each request's fields and headers and answers with each text's length."""

    def __init__(self, *answers):
        self.requests = []
        self.answers = list(answers)

    def __call__(self, request):
        self.requests.append(request)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        texts = json.loads(request.content)["input"]
        data = [{"index": n, "embedding": [float(len(text)), 1.0]} for n, text in enumerate(texts)]
        return httpx.Response(200, json={"data": data})

    @property
    def fields(self):
        return [json.loads(request.content) for request in self.requests]


def embedder(endpoint, client=None, **settings):
    client = client or httpx.AsyncClient(transport=httpx.MockTransport(endpoint))
    settings = {"base_url": "http://embed.test/v1/", "retry": Retry(attempts=3, first=0.0), **settings}
    return OpenAIEmbedder("m-passage", 2, client=client, **settings)


async def test_memories_and_cues_are_asked_for_by_their_own_model_and_options():
    endpoint = Endpoint()
    asks = embedder(
        endpoint,
        api_key="k",
        query_model="m-query",
        options={"dimensions": 2, "input_type": "passage"},
        query_options={"input_type": "query"},
    )
    assert await asks.embed(["a", "bb"]) == [[1.0, 1.0], [2.0, 1.0]]
    assert await asks.embed_query("ccc") == [3.0, 1.0]
    assert endpoint.fields == [
        {"model": "m-passage", "input": ["a", "bb"], "dimensions": 2, "input_type": "passage"},
        {"model": "m-query", "input": ["ccc"], "dimensions": 2, "input_type": "query"},
    ]
    assert {str(request.url) for request in endpoint.requests} == {"http://embed.test/v1/embeddings"}
    assert {request.headers["authorization"] for request in endpoint.requests} == {"Bearer k"}


async def test_without_a_key_no_authorization_is_sent():
    endpoint = Endpoint()
    await embedder(endpoint).embed(["a"])
    assert "authorization" not in endpoint.requests[0].headers


def test_the_stored_name_is_the_model_or_what_was_given():
    assert embedder(Endpoint()).model == "m-passage"
    assert embedder(Endpoint(), name="ours").model == "ours"


@pytest.mark.parametrize(
    "passing", [httpx.ConnectError("refused"), httpx.ReadError("reset"), httpx.Response(503)]
)
async def test_passing_failures_are_tried_again(passing):
    endpoint = Endpoint(passing)
    assert await embedder(endpoint).embed_query("abc") == [3.0, 1.0]
    assert len(endpoint.requests) == 2


async def test_an_endpoint_that_stays_away_is_unavailable_and_its_address_stays_out_of_the_message():
    endpoint = Endpoint(*[httpx.ConnectError("http://user:secret@embed.test refused")] * 3)
    with pytest.raises(
        EmbedderUnavailable, match="m-passage: the endpoint cannot be reached: ConnectError"
    ) as e:
        await embedder(endpoint).embed(["abc"])
    assert "secret" not in str(e.value)
    assert len(endpoint.requests) == 3


async def test_a_redirect_is_not_followed_with_the_key():
    endpoint = Endpoint(httpx.Response(307, headers={"location": "http://elsewhere.test/"}))
    with pytest.raises(EmbedderError, match="answered 307"):
        await embedder(endpoint, api_key="k").embed(["abc"])
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("content", [b"<html>", b"", b"\xff\xfe", b"[" * 100_000])
async def test_a_success_that_is_not_json_is_an_error(content):
    with pytest.raises(EmbedderError, match="cannot be read"):
        await embedder(Endpoint(httpx.Response(200, content=content))).embed(["abc"])


async def test_a_wrong_dimension_is_an_error_that_gives_both():
    endpoint = Endpoint(httpx.Response(200, json={"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]}))
    with pytest.raises(EmbedderError, match="3 dimensions where 2 were promised"):
        await embedder(endpoint).embed(["abc"])


async def test_a_borrowed_client_is_never_closed():
    client = httpx.AsyncClient(transport=httpx.MockTransport(Endpoint()))
    async with embedder(None, client) as asks:
        await asks.embed(["abc"])
    assert not client.is_closed
    await client.aclose()


def test_the_key_is_not_shown():
    assert "secret" not in repr(embedder(Endpoint(), api_key="secret"))


@pytest.mark.parametrize("settings", [{"base_url": "embed.test/v1"}, {"baseline": 2.0}, {"batch_size": 0}])
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(MemoryContractError):
        embedder(Endpoint(), **settings)
