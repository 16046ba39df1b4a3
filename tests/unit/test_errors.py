"""Errors: what they are, what they carry, what they never show."""

from __future__ import annotations

import copy
import pickle
import threading
from datetime import datetime

import pytest

from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable, SchemaMismatch, SymfonicError
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.scope import MemoryScope

SECRET = "hunter2"


def test_every_error_is_a_symfonic_error_and_one_that_python_knows():
    assert issubclass(MemoryContractError, SymfonicError)
    assert issubclass(MemoryContractError, ValueError)
    assert issubclass(MemoryUnavailable, SymfonicError)
    assert issubclass(MemoryUnavailable, ConnectionError)
    assert issubclass(SchemaMismatch, MemoryUnavailable)


@pytest.mark.parametrize("kind", [SymfonicError, MemoryContractError, MemoryUnavailable, SchemaMismatch])
def test_anybody_may_raise_one_with_a_plain_message(kind):
    assert str(kind("the graph is down")) == "the graph is down"
    assert str(kind()) == ""


@pytest.mark.parametrize(
    "copied", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy]
)
def test_errors_pickle_with_their_facts(copied):
    contract = copied(MemoryContractError("limit must be …", field="limit", rule="1 to 1000", got=0))
    assert (str(contract), contract.field, contract.rule, contract.got) == (
        "limit must be …",
        "limit",
        "1 to 1000",
        0,
    )
    schema = copied(SchemaMismatch("run migrate", expected="0002", found="0001"))
    assert (str(schema), schema.expected, schema.found) == ("run migrate", "0002", "0001")
    assert str(copied(MemoryUnavailable("down"))) == "down"


def test_facts_are_none_where_only_a_message_was_given():
    error = MemoryContractError("no")
    assert (error.field, error.rule, error.got) == (None, None, None)
    assert (SchemaMismatch("no").expected, SchemaMismatch("no").found) == (None, None)


def test_an_error_names_the_field_the_rule_and_the_value():
    with pytest.raises(MemoryContractError) as caught:
        MemoryQuery("org:acme", limit=1001)
    assert caught.value.field == "limit"
    assert caught.value.rule == "an integer from 1 to 1000"
    assert caught.value.got == 1001
    assert str(caught.value) == "limit must be an integer from 1 to 1000, got 1001"


def _record(**changes):
    fields = {"record_id": "m1", "scope": "org:acme", "layer": "semantic", "text": "a fact"}
    return MemoryRecord(**{**fields, **changes})


@pytest.mark.parametrize(
    ("field", "make", "position"),
    [
        ("text", lambda: _record(text=f"{SECRET}\x00"), "7"),
        ("text", lambda: _record(text=f"{SECRET} \ud800 {SECRET}"), "8"),
        ("text", lambda: _record(text=SECRET * 20_000), None),
        ("text", lambda: _record(text=SECRET.encode()), None),
        ("metadata", lambda: _record(metadata={"a": 1, SECRET: [SECRET, float("nan")]}), "1.1"),
        ("metadata", lambda: _record(metadata={SECRET: {SECRET: f"{SECRET}\x00"}}), "0.0"),
        ("metadata", lambda: _record(metadata={f"{SECRET}\udfff": 1}), "0"),
        ("metadata", lambda: _record(metadata={SECRET: object()}), "0"),
        ("metadata", lambda: _record(metadata=[SECRET]), None),
        ("cue", lambda: MemoryQuery("org:acme", f"{SECRET}\x00"), "7"),
        ("cue", lambda: MemoryQuery("org:acme", [SECRET]), None),
        ("where", lambda: MemoryQuery("org:acme", where={SECRET: float("inf")}), "0"),
        ("where", lambda: MemoryQuery("org:acme", where=SECRET), None),
        ("embedding", lambda: MemoryQuery("org:acme", embedding=[0.25, float("nan")]), "1"),
        ("embedding", lambda: MemoryQuery("org:acme", embedding=[0.25, SECRET]), "1"),
        ("embedding", lambda: MemoryQuery("org:acme", embedding=SECRET), None),
    ],
)
def test_private_content_is_told_by_type_length_and_position_alone(field, make, position):
    with pytest.raises(MemoryContractError) as caught:
        make()
    error = caught.value
    assert error.field == field
    told = f"{error} {error.args} {error.rule} {error.got!r}"
    assert SECRET not in told
    assert "0.25" not in told
    assert "length" in str(error.got)
    if position is not None:
        assert str(error.got).endswith(f"fault at {position}")
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


@pytest.mark.parametrize(
    "make",
    [
        lambda: _record(salience=threading.Lock()),
        lambda: _record(record_id="\ud800"),
        lambda: _record(record_id="m" * 100_000),
        lambda: _record(access_count=-(10**10_000)),
        lambda: _record(created_at=datetime(2024, 1, 1)),
        lambda: _record(kind=lambda: None),
        lambda: _record(scope=object()),
        lambda: MemoryScope.parse("org:\ud800"),
    ],
)
def test_whatever_came_in_the_error_is_short_printable_and_pickles(make):
    with pytest.raises(MemoryContractError) as caught:
        make()
    assert len(str(caught.value)) < 400
    str(caught.value).encode()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.field, again.got) == (str(caught.value), caught.value.field, caught.value.got)
