"""The rules that single values must keep, each raising MemoryContractError in the same words.

Every check takes the value and the name of the field, and returns the value in its plain type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from math import isfinite
from numbers import Real
from operator import index
from typing import Any

from symfonic_pg.memory.errors import MemoryContractError

MAX_ID_BYTES = 255
MAX_KIND_BYTES = 63
MAX_COUNT = 2**63 - 1

_SHOWN = 100
# A day inside the calendar's ends, so that every time zone can show the moment and no driver takes it
# for infinity.
_EARLIEST = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
_LATEST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


def broken(field: str, rule: str, value: object) -> MemoryContractError:
    """The error for a value that may be shown."""
    got, shown = _showable(value)
    return MemoryContractError(f"{field} must be {rule}, got {shown}", field=field, rule=rule, got=got)


def broken_private(field: str, rule: str, value: object, position: object = None) -> MemoryContractError:
    """The error for a value that must not be shown: it tells type, length and where the fault is."""
    got = describe(value, position)
    return MemoryContractError(f"{field} must be {rule}, got {got}", field=field, rule=rule, got=got)


def describe(value: object, position: object = None) -> str:
    """Type, length and position of the fault, and nothing of the content."""
    text = type(value).__name__
    # Whatever a foreign __len__ raises, the fault to report is the caller's value.
    with suppress(Exception):
        text += f" of length {len(value)}"  # type: ignore[arg-type]
    return text if position is None else f"{text}, fault at {position}"


def _showable(value: object) -> tuple[object, str]:
    """The value and its text; large and foreign values only as a description, so that errors pickle."""
    if isinstance(value, str):
        plain = str.__str__(value)
        if len(plain) > _SHOWN:
            plain = f"{plain[:_SHOWN]}… ({len(plain)} characters)"
        return plain, repr(plain)
    if isinstance(value, int) and value.bit_length() > 256:
        described = f"an integer of {value.bit_length()} bits"
    elif value is None or type(value) in (bool, int, float, timedelta):
        return value, repr(value)
    else:
        described = describe(value)
    return described, described


def fault_position(text: str) -> int | None:
    """Where the first NUL or lone surrogate stands, None for a clean text."""
    nul = text.find("\x00")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start if nul < 0 else min(nul, error.start)
    return None if nul < 0 else nul


def plain_text(value: object, field: str) -> str:
    """A text whose content stays private: any str without NUL and lone surrogates."""
    if not isinstance(value, str):
        raise broken_private(field, "a str", value)
    text = str.__str__(value)
    position = fault_position(text)
    if position is not None:
        raise broken_private(field, "text without NUL and lone surrogates", text, position)
    return text


def name(value: object, field: str, limit: int, *, least: int = 1, blank: bool = False) -> str:
    """An id or a kind: `least` to `limit` UTF-8 bytes, not blank unless allowed."""
    if not isinstance(value, str):
        raise broken(field, "a str", value)
    text = str.__str__(value)
    if fault_position(text) is not None:
        raise broken(field, "text without NUL and lone surrogates", text)
    if not least <= len(text.encode()) <= limit:
        raise broken(field, f"{least} to {limit} UTF-8 bytes", text)
    if not blank and not text.strip():
        raise broken(field, "not blank", text)
    return text


def record_id(value: object, field: str = "record_id") -> str:
    """The id of a memory: 1 to 255 UTF-8 bytes, not blank."""
    return name(value, field, MAX_ID_BYTES)


def record_ids(value: object, field: str) -> tuple[str, ...]:
    """An iterable of record ids, in its order."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise broken(field, "an iterable of record ids", value)
    return tuple(record_id(item, field) for item in value)


def number(value: object, field: str, low: float, high: float) -> float:
    """A finite number in [low, high]; bool is no number."""
    if type(value) is float:
        plain = value
    elif isinstance(value, bool) or not isinstance(value, Real):
        raise broken(field, f"a number from {low:g} to {high:g}", value)
    else:
        try:
            plain = float(value)
        except OverflowError:
            plain = float("inf")
    if not low <= plain <= high or not isfinite(plain):
        raise broken(field, f"a number from {low:g} to {high:g}", value)
    return plain


def share(value: object, field: str) -> float:
    """A number in [0, 1]."""
    return number(value, field, 0.0, 1.0)


def whole(value: object, field: str, low: int, high: int | None = None) -> int:
    """An integer in [low, high]; bool is no number."""
    rule = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    if type(value) is int:
        plain = value
    elif isinstance(value, bool):
        raise broken(field, rule, value)
    else:
        try:
            plain = index(value)  # type: ignore[arg-type]
        except TypeError:
            raise broken(field, rule, value) from None
    if plain < low or (high is not None and plain > high):
        raise broken(field, rule, plain)
    return plain


def flag(value: object, field: str) -> bool:
    """A bool and nothing that merely counts as one."""
    if value is True or value is False:
        return value
    raise broken(field, "a bool", value)


def moment(value: object, field: str) -> datetime:
    """An aware, finite datetime, in UTC."""
    if not isinstance(value, datetime):
        raise broken(field, "a datetime", value)
    if value.tzinfo is None or value.utcoffset() is None:
        raise broken(field, "an aware datetime", str(value))
    if type(value) is not datetime:
        value = datetime.combine(value.date(), value.timetz())
    try:
        utc = value.astimezone(UTC)
    except OverflowError:
        raise broken(field, "a datetime inside the calendar", str(value)) from None
    if not _EARLIEST <= utc <= _LATEST:
        raise broken(field, "a datetime inside the calendar", str(value))
    return utc


def optional_moment(value: object, field: str) -> datetime | None:
    """An aware, finite datetime, or None."""
    return None if value is None else moment(value, field)


def instance(value: object, kind: type[Any], field: str) -> None:
    """Raise unless the value is of the type."""
    if not isinstance(value, kind):
        raise broken(field, f"a {kind.__name__}", value)


def members(value: object, kind: type[Any], field: str) -> tuple[Any, ...]:
    """An iterable of values of one type, as a tuple."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise broken(field, f"an iterable of {kind.__name__}", value)
    items = tuple(value)
    for item in items:
        instance(item, kind, field)
    return items
