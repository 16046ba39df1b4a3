"""Rows in PostgreSQL's binary COPY format: the same bytes whichever driver sends them.

The format is that of the documentation of COPY: a signature, then for each row the number of its fields and
each field as a length and its bytes, then a trailer. Every encoder below gives a field with its length in
front.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack(">II", 0, 0)
_TRAILER = struct.pack(">h", -1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_CHUNK = 1 << 16

_TEXT_OID = 25
_INTEGER_OID = 23

_length = struct.Struct(">i").pack
_smallint = struct.Struct(">ih").pack
_integer = struct.Struct(">ii").pack
_bigint = struct.Struct(">iq").pack
_double = struct.Struct(">id").pack
_array = struct.Struct(">iiiii").pack

NULL = _length(-1)


def rows(encoded: Iterable[Sequence[bytes]]) -> Iterator[bytes]:
    """The stream of a COPY, in chunks of some 64 kB, from rows of encoded fields."""
    buffer = bytearray(_SIGNATURE)
    for fields in encoded:
        buffer += struct.pack(">h", len(fields))
        buffer += b"".join(fields)
        if len(buffer) >= _CHUNK:
            yield bytes(buffer)
            buffer.clear()
    buffer += _TRAILER
    yield bytes(buffer)


def raw(value: bytes) -> bytes:
    """bytea."""
    return _length(len(value)) + value


def text(value: str | None) -> bytes:
    """text."""
    return NULL if value is None else raw(value.encode())


def json(value: str) -> bytes:
    """jsonb: a version number and the JSON text."""
    return raw(b"\x01" + value.encode())


def smallint(value: int) -> bytes:
    """smallint."""
    return _smallint(2, value)


def integer(value: int) -> bytes:
    """integer."""
    return _integer(4, value)


def bigint(value: int) -> bytes:
    """bigint."""
    return _bigint(8, value)


def double(value: float | None) -> bytes:
    """double precision."""
    return NULL if value is None else _double(8, value)


def timestamptz(value: datetime | None) -> bytes:
    """timestamptz: microseconds since 2000-01-01 in UTC."""
    return NULL if value is None else _bigint(8, (value - _EPOCH) // _MICROSECOND)


def text_array(values: Sequence[str]) -> bytes:
    """text[]."""
    return _array_of(_TEXT_OID, [text(value) for value in values])


def integer_array(values: Sequence[int]) -> bytes:
    """integer[]."""
    return _array_of(_INTEGER_OID, [integer(value) for value in values])


def halfvec(values: Sequence[float]) -> bytes:
    """pgvector's halfvec."""
    # Not at the top: this module is imported where no vector is ever written, and pgvector may be missing.
    from pgvector import HalfVector

    return raw(HalfVector(list(values)).to_binary())


def _array_of(oid: int, items: list[bytes]) -> bytes:
    if not items:
        return raw(struct.pack(">iii", 0, 0, oid))
    return raw(_array(1, 0, oid, len(items), 1) + b"".join(items))
