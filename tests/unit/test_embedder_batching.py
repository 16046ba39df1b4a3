"""Batches, concurrency, timeouts and retries, without any network."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.embedders import Batching, EmbedderError, EmbedderUnavailable, Retry
from symfonic_pg.memory.errors import MemoryContractError

AT_ONCE = Retry(attempts=3, first=0.0, longest=5.0)


def length_vectors(texts):
    return [(float(len(text)), 1.0) for text in texts]


class Recorder:
    """Answers with each text's length, and keeps what it was asked and how many calls overlapped."""

    def __init__(self, failures=()):
        self.batches = []
        self.running = self.most = 0
        self.failures = list(failures)

    async def __call__(self, texts):
        self.batches.append(list(texts))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0.001)
            if self.failures:
                raise self.failures.pop(0)
            return length_vectors(texts)
        finally:
            self.running -= 1


def batching(**settings):
    return Batching("m", 2, **{"retry": AT_ONCE, **settings})


async def test_batches_keep_to_size_and_characters_and_vectors_come_back_in_order():
    texts = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff", "g"]
    send = Recorder()
    vectors = await batching(size=3, characters=10).embed(texts, send)
    assert send.batches == [["a", "bb", "ccc"], ["dddd", "eeeee"], ["ffffff", "g"]]
    assert vectors == length_vectors(texts)


@given(
    st.lists(st.text("ab ", max_size=8), max_size=20),
    st.integers(1, 5),
    st.integers(1, 12),
    st.integers(1, 6),
    st.integers(1, 4),
)
def test_every_text_gets_its_own_vector_whatever_the_limits(texts, size, characters, longest, concurrency):
    async def send(batch):
        assert 1 <= len(batch) <= size
        assert len(batch) == 1 or sum(map(len, batch)) <= characters
        return length_vectors(batch)

    limits = batching(size=size, characters=characters, longest=longest, concurrency=concurrency)
    vectors = asyncio.run(limits.embed(texts, send))
    assert vectors == [
        (float(len(text[:longest])), 1.0) if text[:longest].strip() else (0.0, 0.0) for text in texts
    ]


async def test_blank_texts_are_never_sent():
    send = Recorder()
    assert await batching().embed(["", " \n", "\u2003"], send) == [(0.0, 0.0)] * 3
    assert await batching().embed_one("  ", send) == (0.0, 0.0)
    assert await batching().embed([], send) == []
    assert send.batches == []


async def test_a_text_is_cut_after_the_longest_length():
    send = Recorder()
    assert await batching(longest=4).embed(["abcdef"], send) == [(4.0, 1.0)]
    assert await batching(longest=4).embed_one("abcdef", send) == (4.0, 1.0)


async def test_concurrency_is_bounded_over_all_calls():
    send = Recorder()
    limits = batching(size=1, concurrency=3)
    await asyncio.gather(*(limits.embed(["x"] * 10, send) for _ in range(4)))
    assert len(send.batches) == 40
    assert send.most == 3


async def test_a_query_does_not_wait_behind_a_whole_load():
    limits = batching(size=1, concurrency=2)
    send = Recorder()
    load = asyncio.create_task(limits.embed(["load"] * 50, send))
    await asyncio.sleep(0)
    await limits.embed_one("query", send)
    assert send.batches.index(["query"]) <= 4
    await load


async def test_a_passing_failure_is_tried_again():
    send = Recorder([EmbedderUnavailable("busy"), EmbedderUnavailable("busy")])
    assert await batching().embed(["abc"], send) == [(3.0, 1.0)]
    assert send.batches == [["abc"]] * 3


async def test_attempts_run_out_and_the_last_failure_is_raised():
    send = Recorder([EmbedderUnavailable(f"busy {n}") for n in range(9)])
    with pytest.raises(EmbedderUnavailable, match="busy 2"):
        await batching().embed(["abc"], send)
    assert len(send.batches) == 3


@pytest.mark.parametrize("failure", [EmbedderError("bad key"), ValueError("bug")])
async def test_a_lasting_failure_is_raised_at_once_as_it_is(failure):
    send = Recorder([failure])
    with pytest.raises(type(failure)) as caught:
        await batching(size=1).embed(["a", "b", "c"], send)
    assert caught.value is failure


async def test_the_first_lasting_failure_cancels_the_other_batches():
    cancelled = []

    async def send(texts):
        if texts == ["bad"]:
            raise EmbedderError("bad")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(texts)
            raise

    with pytest.raises(EmbedderError, match="bad"):
        await batching(size=1, concurrency=3).embed(["a", "b", "bad", "c"], send)
    assert cancelled == [["a"], ["b"]]


async def test_cancelling_the_caller_cancels_what_is_on_its_way_and_frees_the_slots():
    limits = batching(size=1, concurrency=2)
    send = Recorder()

    async def hang(texts):
        await asyncio.sleep(60)

    task = asyncio.create_task(limits.embed(["a", "b", "c"], hang))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await limits.embed(["a", "b"], send) == length_vectors(["a", "b"])
    assert send.most == 2


async def test_a_slow_answer_is_a_passing_failure_and_tried_again():
    calls = []

    async def send(texts):
        calls.append(texts)
        if len(calls) == 1:
            await asyncio.sleep(60)
        return length_vectors(texts)

    assert await batching(timeout=0.02).embed(["abc"], send) == [(3.0, 1.0)]
    assert len(calls) == 2


async def test_a_timeout_of_the_endpoint_s_own_is_a_passing_failure_too():
    with pytest.raises(EmbedderUnavailable, match="gave no answer in time"):
        await batching(timeout=None).embed(["abc"], Recorder([TimeoutError()] * 3))


async def test_the_timeout_bounds_all_attempts_of_a_query_together():
    async def send(texts):
        await asyncio.sleep(0.05)
        raise EmbedderUnavailable("busy")

    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(EmbedderUnavailable, match=r"no answer within 0\.12 seconds"):
        await batching(timeout=0.12, retry=Retry(attempts=99, first=0.0)).embed_one("abc", send)
    assert loop.time() - begun < 1.0


async def test_a_query_gives_up_at_once_where_the_pause_would_outlast_its_time():
    send = Recorder([EmbedderUnavailable("busy", retry_after=4.0)])
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(EmbedderUnavailable, match="busy"):
        await batching(timeout=2.0).embed_one("abc", send)
    assert loop.time() - begun < 1.0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([(1.0, 1.0)], "the embedder m returned 1 vectors for 2 texts"),
        ([(1.0, 1.0)] * 3, "the embedder m returned 3 vectors for 2 texts"),
        ([(1.0, 1.0), (1.0,)], "the embedder m returned 1 dimensions where 2 were promised"),
    ],
)
async def test_a_wrong_answer_is_a_lasting_failure_that_says_what_is_wrong(answer, message):
    calls = []

    async def send(texts):
        calls.append(texts)
        return answer

    with pytest.raises(EmbedderError, match=message) as caught:
        await batching().embed(["a", "b"], send)
    assert not isinstance(caught.value, EmbedderUnavailable)
    assert len(calls) == 1


def test_one_object_serves_several_event_loops_in_turn():
    limits = batching(size=1, concurrency=1)
    for _ in range(2):
        send = Recorder()
        assert asyncio.run(limits.embed(["a", "bb", "ccc"], send)) == length_vectors(["a", "bb", "ccc"])


def test_pauses_double_up_to_the_longest_and_never_undercut_what_was_asked():
    retry = Retry(attempts=10, first=0.5, longest=4.0)
    assert [retry.pause(failed) for failed in (1, 2, 3, 4, 5, 9)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert retry.pause(1, chance=0.0) == 0.25
    assert retry.pause(1, retry_after=3.0) == 3.0
    assert retry.pause(4, retry_after=3.0) == 4.0
    assert retry.pause(1, retry_after=4.5) is None
    assert retry.pause(10) is None


@given(st.integers(1, 5000), st.floats(0, 1))
def test_a_pause_is_never_longer_than_the_longest(failed, chance):
    assert 0.25 <= Retry(attempts=10_000, first=0.5, longest=30.0).pause(failed, None, chance) <= 30.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Retry(attempts=0),
        lambda: Retry(first=-1.0),
        lambda: Retry(first=2.0, longest=1.0),
        lambda: Batching("m", 0),
        lambda: Batching("m", 2, size=0),
        lambda: Batching("m", 2, concurrency=0),
        lambda: Batching("m", 2, longest=0),
        lambda: Batching("m", 2, timeout=float("nan")),
    ],
)
def test_settings_that_cannot_work_are_refused(make):
    with pytest.raises(MemoryContractError):
        make()
