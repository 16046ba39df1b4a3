"""Edges, activated nodes and the log as values."""

from __future__ import annotations

import copy
import pickle

import pytest

from symfonic_pg.memory.activation import ActivatedNode, ActivationLog, Association
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.records import MemoryRecord

RECORD = MemoryRecord("m1", "org:acme", "semantic", "text")


def test_an_association_has_its_defaults_and_takes_whole_numbers() -> None:
    edge = Association("m0", RECORD)
    assert (edge.relationship, edge.weight) == ("associated", 1.0)
    assert Association("m0", RECORD, weight=3) == Association("m0", RECORD, weight=3.0)
    assert Association("m0", RECORD, weight=0).weight == 0.0


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf"), True, "1", None])
def test_a_weight_is_finite_and_not_negative(weight: object) -> None:
    with pytest.raises(MemoryContractError, match="weight"):
        Association("m0", RECORD, weight=weight)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("", RECORD), "source_id"),
        (("a\x00", RECORD), "source_id"),
        (("m0", "m1"), "target"),
        (("m0", RECORD, " "), "relationship"),
        (("m0", RECORD, "é" * 128), "relationship"),
        (("m0", RECORD, "\ud800"), "relationship"),
    ],
)
def test_a_malformed_association_names_the_field(arguments: tuple, field: str) -> None:
    with pytest.raises(MemoryContractError, match=field) as raised:
        Association(*arguments)
    assert raised.value.field == field


def test_a_node_is_made_of_a_record_as_a_seed_by_default() -> None:
    assert ActivatedNode.of(RECORD, 0.5) == ActivatedNode("m1", 0.5, 0)
    assert ActivatedNode.of(RECORD, 1, hop=2) == ActivatedNode("m1", 1.0, 2)


@pytest.mark.parametrize(
    "arguments", [("", 0.5, 0), ("m1", 1.5, 0), ("m1", float("nan"), 0), ("m1", 0.5, -1), ("m1", 0.5, 1.0)]
)
def test_a_malformed_node_is_a_contract_error(arguments: tuple) -> None:
    with pytest.raises(MemoryContractError):
        ActivatedNode(*arguments)


def test_a_log_cannot_be_changed_and_keeps_its_equality_through_pickle_and_copy() -> None:
    trails = {"m1": ["m1"]}
    log = ActivationLog([ActivatedNode("m1", 0.5)], trails, [["m2", "late"]], True)
    trails["m9"] = ["m9"]
    assert log == ActivationLog((ActivatedNode("m1", 0.5, 0),), {"m1": ("m1",)}, (("m2", "late"),), True)
    assert pickle.loads(pickle.dumps(log)) == copy.deepcopy(log) == log
    assert hash(log) == hash(copy.copy(log))
    with pytest.raises(TypeError):
        log.trails["m3"] = ("m3",)  # type: ignore[index]


def test_an_empty_log_says_that_nothing_happened() -> None:
    assert ActivationLog() == ActivationLog((), {}, (), False)


@pytest.mark.parametrize(
    "wrong", [{"nodes": "m1"}, {"nodes": [1]}, {"trails": [("m1", "m1")]}, {"degraded": 1}]
)
def test_a_malformed_log_is_a_contract_error(wrong: dict) -> None:
    with pytest.raises(MemoryContractError):
        ActivationLog(**wrong)
