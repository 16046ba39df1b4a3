"""Reading the answers of an OpenAI-compatible endpoint."""

import base64
import struct
from datetime import UTC, datetime

import pytest

from symfonic_pg.embedders import EmbedderError, EmbedderUnavailable
from symfonic_pg.embedders.replies import read_vectors, refusal, retry_after


def body(*entries):
    return {"object": "list", "data": list(entries)}


def entry(index, *vector):
    return {"object": "embedding", "index": index, "embedding": list(vector)}


def test_vectors_are_ordered_by_index():
    assert read_vectors(body(entry(1, 2.0), entry(2, 3), entry(0, 1.0)), 3, "m") == [[1.0], [2.0], [3.0]]


def test_without_an_index_they_stand_in_order():
    assert read_vectors(body({"embedding": [1.0]}, {"embedding": [2.0]}), 2, "m") == [[1.0], [2.0]]


def test_base64_of_little_endian_floats_is_read():
    packed = base64.b64encode(struct.pack("<2f", 0.5, -2.0)).decode()
    assert read_vectors(body({"index": 0, "embedding": packed}), 1, "m") == [[0.5, -2.0]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "no list `data`"),
        ([], "no list `data`"),
        ({}, "no list `data`"),
        ({"data": {}}, "no list `data`"),
        (body("x", "y"), "no list `data`"),
        (body(entry(0, 1.0)), "returned 1 vectors for 2 texts"),
        (body(entry(0, 1.0), entry(0, 1.0)), "`index` does not number"),
        (body(entry(0, 1.0), entry(2, 1.0)), "`index` does not number"),
        (body(entry(0, 1.0), entry(True, 1.0)), "`index` does not number"),
        (body(entry(0, 1.0), entry("1", 1.0)), "`index` does not number"),
        (body(entry(0, 1.0), {"index": 1}), "not a list of numbers"),
        (body(entry(0, 1.0), entry(1, None)), "not a list of numbers"),
        (body(entry(0, 1.0), entry(1, True)), "not a list of numbers"),
        (body(entry(0, 1.0), entry(1, 10**400)), "beyond a float"),
        (body(entry(0, 1.0), {"index": 1, "embedding": "AAA"}), "not base64"),
        (body(entry(0, 1.0), {"index": 1, "embedding": "AAAAAAA="}), "not base64"),
        (body(entry(0, 1.0), {"index": 1, "embedding": "ü"}), "not base64"),
    ],
)
def test_anything_else_is_an_error_that_says_what_is_wrong(answer, message):
    with pytest.raises(EmbedderError, match=message) as caught:
        read_vectors(answer, 2, "m")
    assert caught.value.model == "m"
    assert not isinstance(caught.value, EmbedderUnavailable)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_statuses_that_pass(status):
    error = refusal(status, None, {"retry-after": "7"}, "m")
    assert isinstance(error, EmbedderUnavailable)
    assert error.retry_after == 7.0
    assert str(status) in str(error)


@pytest.mark.parametrize(
    ("status", "hint"),
    [(401, "api_key"), (404, "base_url"), (413, "max_characters"), (400, "400"), (307, "307")],
)
def test_statuses_that_last_say_what_to_look_at(status, hint):
    error = refusal(status, None, {}, "m")
    assert not isinstance(error, EmbedderUnavailable)
    assert hint in str(error)


def test_being_out_of_credit_does_not_pass_by_waiting():
    error = refusal(429, {"error": {"code": "insufficient_quota", "message": "pay"}}, {}, "m")
    assert not isinstance(error, EmbedderUnavailable)
    assert "insufficient_quota" in str(error)


@pytest.mark.parametrize(
    "said", ["text", {"message": "bad input: my secret"}, {"code": 5}, {"code": ["x"]}, []]
)
def test_what_the_endpoint_says_about_the_input_is_not_repeated(said):
    error = refusal(400, {"error": said}, {}, "m")
    assert str(error) == "m: the endpoint answered 400"


NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        (" 1.5 ", 1.5),
        ("0", 0.0),
        ("-4", 0.0),
        ("Mon, 04 May 2026 12:00:30 GMT", 30.0),
        ("Mon, 04 May 2026 12:00:30", 30.0),
        ("Mon, 04 May 2026 11:00:00 GMT", 0.0),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    assert retry_after({"retry-after": value}, NOW) == seconds


def test_without_the_header_nothing_is_said():
    assert retry_after({}) is None
