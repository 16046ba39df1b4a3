"""Records: defaults, conveniences, and every rule that construction checks."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from hashlib import sha256

import numpy
import pytest
from hypothesis import settings

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.records import MemoryRecord, RememberReport
from symfonic_pg.memory.scope import MemoryScope

quick = settings(deadline=None, max_examples=200)

ACME = MemoryScope.parse("org:acme")
NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)


def record(**changes):
    fields = {"record_id": "m1", "scope": ACME, "layer": MemoryLayer.SEMANTIC, "text": "a fact"}
    return MemoryRecord(**{**fields, **changes})


def test_the_defaults_of_a_record():
    before = datetime.now(UTC)
    made = MemoryRecord("m1", ACME, MemoryLayer.SEMANTIC, "a fact")
    assert before <= made.created_at <= datetime.now(UTC)
    assert made.updated_at == made.created_at
    assert (made.salience, made.kind, made.access_count, made.language) == (None, "", 0, None)
    assert made.last_accessed_at is made.valid_from is made.valid_until is made.expires_at is None
    assert made.metadata == {}
    assert made.content_hash == sha256(b"a fact").hexdigest()


def test_a_record_remembers_whether_its_creation_was_given():
    assert not record().created_at_given
    assert record(created_at=NOON).created_at_given
    assert record(created_at=NOON).updated_at == NOON
    assert record(created_at=NOON) == replace(record(), created_at=NOON, updated_at=NOON)


def test_conveniences_are_taken_and_kept_in_their_plain_types():
    made = record(scope="org:acme/user:u1", layer="episodic", salience=1, access_count=numpy.int64(3))
    assert made.scope == MemoryScope.parse("org:acme/user:u1")
    assert made.layer is MemoryLayer.EPISODIC
    assert type(made.salience) is float
    assert type(made.access_count) is int


def test_datetimes_are_kept_in_utc():
    there = datetime(2024, 6, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    made = record(created_at=there)
    assert made.created_at == NOON
    assert made.created_at.tzinfo is UTC


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("record_id", ""),
        ("record_id", " "),
        ("record_id", "é" * 128),
        ("record_id", "a\x00"),
        ("record_id", "\ud800"),
        ("record_id", 7),
        ("record_id", None),
        ("scope", None),
        ("scope", "acme"),
        ("layer", "facts"),
        ("layer", None),
        ("layer", 1),
        ("layer", ["semantic"]),
        ("text", ""),
        ("text", " \n\u2003"),
        ("text", "a" * 100_001),
        ("text", "a\x00"),
        ("text", "\udc80"),
        ("text", None),
        ("text", b"a"),
        ("salience", 1.5),
        ("salience", -0.1),
        ("salience", float("nan")),
        ("salience", float("inf")),
        ("salience", True),
        ("salience", "0.5"),
        ("kind", None),
        ("kind", "é" * 32),
        ("kind", "a\x00"),
        ("access_count", -1),
        ("access_count", 1.0),
        ("access_count", True),
        ("access_count", 2**63),
        ("access_count", None),
        ("created_at", datetime(2024, 1, 1)),
        ("created_at", date(2024, 1, 1)),
        ("created_at", "2024-01-01"),
        ("created_at", 0),
        ("updated_at", datetime(2024, 1, 1)),
        ("last_accessed_at", datetime(2024, 1, 1)),
        ("valid_from", datetime(2024, 1, 1)),
        ("valid_until", datetime(2024, 1, 1)),
        ("expires_at", datetime(2024, 1, 1)),
        ("expires_at", datetime.max.replace(tzinfo=UTC)),
        ("valid_from", datetime.min.replace(tzinfo=UTC)),
        ("expires_at", datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))),
        ("language", ""),
        ("language", "a\x00"),
        ("language", 1),
        ("metadata", None),
        ("metadata", [1]),
        ("metadata", "{}"),
        ("metadata", {1: "a"}),
        ("metadata", {"a": {None: 1}}),
        ("metadata", {"a": float("nan")}),
        ("metadata", {"a": [1, {"b": float("inf")}]}),
        ("metadata", {"a": "\x00"}),
        ("metadata", {"a\x00": 1}),
        ("metadata", {"a": ["\ud800"]}),
        ("metadata", {"a": {1, 2}}),
        ("metadata", {"a": NOON}),
        ("metadata", {"a": b"b"}),
        ("metadata", {"a": 10**4300}),
        ("metadata", {"a": [-(10**5000)]}),
    ],
)
def test_a_record_keeps_its_rules(field, value):
    with pytest.raises(MemoryContractError) as caught:
        record(**{field: value})
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field} must be ")


def test_a_memory_cannot_end_before_it_begins():
    assert record(valid_from=NOON, valid_until=NOON).valid_until == NOON
    with pytest.raises(MemoryContractError) as caught:
        record(valid_from=NOON, valid_until=NOON - timedelta(microseconds=1))
    assert caught.value.field == "valid_until"


def test_limits_are_inclusive():
    made = record(record_id="é" * 127 + "e", text="\U0001f600" * 100_000, kind="k" * 63, salience=1.0)
    assert len(made.text) == 100_000
    assert record(metadata={"a": 10**4300 - 1}).metadata["a"] == 10**4300 - 1
    json.dumps(record(metadata={"a": 10**4300 - 1}).metadata)


def test_records_are_values():
    made = record(created_at=NOON, salience=0.5, metadata={"a": [1, {"b": None}], "c": True})
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made), replace(made)):
        assert again == made
        assert hash(again) == hash(made)
        assert again.created_at_given
        with pytest.raises(TypeError):
            again.metadata["a"] = 1
    assert made != replace(made, metadata={"a": 2})
    with pytest.raises(AttributeError):
        made.text = "other"
    assert not hasattr(made, "__dict__")


def test_a_trusted_record_equals_a_checked_one():
    checked = record(created_at=NOON, salience=0.5, kind="k", access_count=2, metadata={"a": [{"b": 1}]})
    trusted = MemoryRecord.trusted(
        "m1", ACME, MemoryLayer.SEMANTIC, "a fact", 0.5, "k", NOON, NOON, 2, metadata={"a": [{"b": 1}]}
    )
    assert trusted == checked
    assert hash(trusted) == hash(checked)
    assert pickle.loads(pickle.dumps(trusted)) == checked
    with pytest.raises(TypeError):
        trusted.metadata["a"][0]["b"] = 2


def test_reports_add_up():
    whole = RememberReport(1, 2, 3, 4) + RememberReport(10, 20, 30, 40)
    assert whole == RememberReport(11, 22, 33, 44)
    assert whole.total == 66
    assert RememberReport().total == 0
