"""Metadata: frozen copies of JSON documents, and containment with the meaning of jsonb."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symfonic_pg.memory.documents import contains
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.scope import MemoryScope

quick = settings(deadline=None, max_examples=200)

ACME = MemoryScope.parse("org:acme")
NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)


def record(**changes):
    fields = {"record_id": "m1", "scope": ACME, "layer": MemoryLayer.SEMANTIC, "text": "a fact"}
    return MemoryRecord(**{**fields, **changes})


def test_metadata_is_a_copy_that_cannot_be_changed():
    given_in = {"a": [1, {"b": [2]}], "c": (3, 4)}
    made = record(metadata=given_in)
    given_in["a"][1]["b"].append(3)
    assert made.metadata == {"a": [1, {"b": [2]}], "c": [3, 4]}
    assert json.loads(json.dumps(made.metadata)) == made.metadata
    for change in (
        lambda: made.metadata.update(x=1),
        lambda: made.metadata.__setitem__("x", 1),
        lambda: made.metadata.pop("a"),
        lambda: made.metadata["a"].append(1),
        lambda: made.metadata["a"].sort(),
        lambda: made.metadata["a"][1]["b"].clear(),
    ):
        with pytest.raises(TypeError):
            change()
    own = dict(made.metadata)
    own["x"] = 1
    assert "x" not in made.metadata


def test_metadata_may_be_nested_a_hundred_deep_and_no_deeper():
    def nested(depth):
        value = {}
        for _ in range(depth - 1):
            value = {"a": value}
        return value

    record(metadata=nested(100))
    with pytest.raises(MemoryContractError):
        record(metadata=nested(101))
    circle = {}
    circle["a"] = [circle, circle]
    with pytest.raises(MemoryContractError):
        record(metadata=circle)


@pytest.mark.parametrize(
    ("document", "part", "expected"),
    [
        ({"a": 1}, {}, True),
        ({}, {"a": 1}, False),
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1.0}, {"a": 1}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 0}, {"a": False}, False),
        ({"a": True}, {"a": True}, True),
        ({"a": None}, {"a": None}, True),
        ({"a": None}, {}, True),
        ({}, {"a": None}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": ""}, {"a": None}, False),
        ({"a": -0.0}, {"a": 0}, True),
        ({"a": 10**23}, {"a": 1e23}, True),
        ({"a": 2**53 + 1}, {"a": float(2**53)}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True),
        ({"a": {"b": 1}}, {"a": {}}, True),
        ({"a": []}, {"a": {}}, False),
        ({"a": {}}, {"a": []}, False),
        ({"a": 1}, {"a": {}}, False),
        ({"a": [1, 2, 3]}, {"a": [3, 1, 1]}, True),
        ({"a": [1]}, {"a": [1, 1]}, True),
        ({"a": [1, 2]}, {"a": []}, True),
        ({"a": [1, 2]}, {"a": [1, 4]}, False),
        ({"a": [1, True]}, {"a": [True]}, True),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": [[1, 2], [3]]}, {"a": [[2]]}, True),
        ({"a": [[1], [2]]}, {"a": [[1, 2]]}, False),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": ["x", "y"]}, {"a": "x"}, False),
        ({"a": "x"}, {"a": ["x"]}, False),
        ([1, 2], 1, True),
        ([1, 2], True, False),
        ([[1]], 1, False),
        (1, [1], False),
        (1, 1.0, True),
        ("a", "a", True),
        ([1], {}, False),
        ({}, [], False),
    ],
)
def test_containment_means_what_jsonb_means(document, part, expected):
    assert contains(document, part) is expected


scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([1.0, 0.5, "a", "b", ""]))
documents = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        ),
        max_leaves=6,
    ),
    max_size=3,
)


@quick
@given(documents)
def test_every_document_contains_itself_and_survives_freezing_and_pickling(document):
    made = record(metadata=document)
    assert made.metadata == document
    assert json.dumps(made.metadata, sort_keys=True) == json.dumps(document, sort_keys=True)
    assert contains(made.metadata, document)
    assert contains(document, made.metadata)
    assert json.dumps(pickle.loads(pickle.dumps(made)).metadata) == json.dumps(made.metadata)


@quick
@given(documents, documents, documents)
def test_containment_is_transitive(first, second, third):
    if contains(first, second) and contains(second, third):
        assert contains(first, third)
