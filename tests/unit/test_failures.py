"""Each SQLSTATE means one thing to a caller, whichever driver met it."""

from __future__ import annotations

import pytest

from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable, SchemaMismatch
from symfonic_pg.postgres.executors.base import Failure
from symfonic_pg.postgres.executors.failures import Collision, as_error, schema_mismatch
from symfonic_pg.postgres.migrations import head_revision


@pytest.mark.parametrize(
    ("states", "error"),
    [
        # no connection; connecting; login; database; resources; operator; system; transaction; lock; rights
        ([None, "08006", "08P01", "28P01", "3D000", "53300", "53100", "57P01"], MemoryUnavailable),
        (["57P03", "57014", "58030", "25006", "25P02", "25P03", "55P03", "42501"], MemoryUnavailable),
        (["40001", "40P01", "23503", "23505"], Collision),
        (["26000", "42P05", "0A000", "XX000"], MemoryUnavailable),
        (["42P01", "42883", "42703", "42704", "3F000"], SchemaMismatch),
        (["SY001", "54000"], MemoryContractError),
        (["22012", "22P02", "42601", "23502", "23514", "P0001"], type(None)),
    ],
)
def test_what_a_state_means(states: list[str | None], error: type[object]) -> None:
    for state in states:
        found = as_error(Failure(state, "what the server said"))
        assert type(found) is error, state
        assert found is None or "what the server said" in str(found)


def test_a_contract_error_says_what_the_function_said() -> None:
    assert str(as_error(Failure("SY001", "weight must be above 0"))) == "weight must be above 0"


def test_behind_a_pooler_the_switch_is_named() -> None:
    assert "prepared_statements=False" in str(as_error(Failure("26000", "no such statement")))


def test_a_mismatch_names_both_revisions_and_the_command() -> None:
    mismatch = schema_mismatch("0000", reason="no such table")
    assert (mismatch.expected, mismatch.found) == (head_revision(), "0000")
    for named in (head_revision(), "revision 0000", "no such table", "symfonic-pg migrate"):
        assert named in str(mismatch)


def test_what_is_missing_at_the_right_revision_is_for_the_doctor() -> None:
    mismatch = schema_mismatch(head_revision(), reason="no such table")
    assert mismatch.expected == mismatch.found
    assert "symfonic-pg doctor" in str(mismatch)
