"""What a driver's failure means to the caller: one table of SQLSTATEs, whichever driver met them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable, SchemaMismatch, SymfonicError
from symfonic_pg.postgres.executors.base import Failure, Translator
from symfonic_pg.postgres.migrations import head_revision

# Raised by the functions of this package for what the caller got wrong.
CONTRACT = "SY001"

# A collision with another writer: the same statement, run again, sees the other's work. A foreign key breaks
# when the row that it names is erased meanwhile, a unique one when another writer stores the same new row.
COLLISIONS = {
    "40001": "serialization failure",
    "40P01": "deadlock",
    "23503": "foreign key violation",
    "23505": "unique violation",
}

# A statement that was prepared before a migration changed what it returns: prepared anew it works.
STALE_PLAN = "0A000"

# Tables, functions, columns, schemas or types of another revision than this code's, or of none.
_OTHER_SCHEMA = {"42P01", "42883", "42703", "42704", "3F000"}

# The session has forgotten or renamed its prepared statements, as behind a pooler that shares sessions.
_POOLER = {"26000", "42P05"}

# Classes and codes of a server or session that cannot be asked: connection, rights, database, resources,
# operator's intervention, system; a read-only or lost transaction; a lock or a plan that went away.
_OUT_OF_REACH = ("08", "28", "3D", "53", "57", "58", "25", "55P03", "42501", STALE_PLAN, "XX")


class Collision(MemoryUnavailable):
    """A statement lost against another writer; the same again may succeed."""


def as_error(failure: Failure) -> SymfonicError | None:
    """The error that stands for a failure; None for one that is a bug (of a statement, or of its caller)."""
    state, message = failure.sqlstate, failure.message
    if state is None:
        return MemoryUnavailable(f"the database cannot be asked: {message}")
    if state == CONTRACT:
        return MemoryContractError(message)
    if state in _OTHER_SCHEMA:
        return schema_mismatch(None, reason=message)
    if state in COLLISIONS:
        return Collision(f"lost against concurrent writers ({COLLISIONS[state]}): {message}")
    if state in _POOLER:
        return MemoryUnavailable(f"behind a pooler connect with prepared_statements=False: {message}")
    if state.startswith("54"):
        return MemoryContractError(f"more than PostgreSQL takes at once, make the batch smaller: {message}")
    if state.startswith(_OUT_OF_REACH):
        return MemoryUnavailable(f"the database cannot be asked ({state}): {message}")
    return None


def schema_mismatch(found: str | None, *, reason: str) -> SchemaMismatch:
    """The error that names the code's revision, the database's as far as it is known, and what to run."""
    expected = head_revision()
    if found == expected:
        message = f"something of revision {expected} is missing ({reason}): run `symfonic-pg doctor`"
    else:
        stands = f"at revision {found}" if found else "at an older one or none"
        message = (
            f"this code needs the schema at revision {expected}, the database stands {stands} ({reason}):"
            " run `symfonic-pg migrate`"
        )
    return SchemaMismatch(message, expected=expected, found=found)


def _too_late(error: TimeoutError, timeout: float) -> str:
    # A pool notes on the cancellation what the call was waiting for.
    notes = "; ".join(getattr(error.__cause__, "__notes__", []))
    return f"the database gave no answer within {timeout:g} s" + (f" ({notes})" if notes else "")


@contextmanager
def reaching() -> Iterator[None]:
    """Around connecting: an error of the operating system there means that the server cannot be reached."""
    try:
        yield
    except TimeoutError:
        raise
    except OSError as exc:
        raise MemoryUnavailable(f"the database cannot be reached: {exc}") from exc


@contextmanager
def translated(driver: Translator, timeout: float) -> Iterator[None]:
    """Raise what the block's failures mean; the driver's own exception is the cause."""
    try:
        yield
    except SymfonicError:
        raise
    except TimeoutError as exc:
        raise MemoryUnavailable(_too_late(exc, timeout)) from exc
    except Exception as exc:
        failure = driver.failure(exc)
        error = as_error(failure) if failure else None
        if error is None:
            raise
        raise error from exc
