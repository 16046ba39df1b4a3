"""Between values and rows: scopes and records as parameters, rows as records and observations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.documents import EMPTY
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.observations import ROUTES, Observation
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.window import ConversationTurn
from symfonic_pg.terms import term_counts

Row = Sequence[Any]

_LAYERS = {layer.value: layer for layer in MemoryLayer}
# What json.loads does, without its look for white space around.
_parsed = json.JSONDecoder().raw_decode


def scope_parameters(scope: MemoryScope) -> tuple[str, list[str], list[str]]:
    """A scope as every statement takes it: the tenant, and the path's kinds and ids root first."""
    return scope.tenant, [level.kind for level in scope.levels], [level.id for level in scope.levels]


def lineage_of(scope: MemoryScope) -> tuple[MemoryScope, ...]:
    """The scopes that are visible at a scope, each at the index that is its distance."""
    return (scope, *scope.ancestors())


def json_text(value: object) -> str:
    """A JSON value as text for a jsonb parameter."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Rows of a width as parallel arrays, which unnest() puts together again."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


class ScopePaths:
    """The distinct scopes of a batch, sorted so that two batches lock them in one order."""

    def __init__(self, scopes: Iterable[MemoryScope]) -> None:
        self._ordered = sorted(set(scopes), key=str)
        self._ordinals = {scope: place for place, scope in enumerate(self._ordered, start=1)}

    def ordinal(self, scope: MemoryScope) -> int:
        """The 1-based place of a scope in the JSON."""
        return self._ordinals[scope]

    def json(self) -> str:
        """The paths as ensure_scopes takes them."""
        return json_text(
            [
                {"tenant": tenant, "kinds": kinds, "level_ids": level_ids}
                for tenant, kinds, level_ids in map(scope_parameters, self._ordered)
            ]
        )


def record_document(record: MemoryRecord, place: int, ordinal: int, language: str) -> dict[str, object]:
    """A record as remember takes it; place and ordinal are 1-based, language cuts a text that names none."""
    counts = term_counts(record.text, record.language or language)
    return {
        "place": place,
        "scope": ordinal,
        "record_id": record.record_id,
        "layer": record.layer.value,
        "text": record.text,
        "salience": record.salience,
        "kind": record.kind,
        "created_at": record.created_at.isoformat(),
        "created_at_given": record.created_at_given,
        "updated_at": record.updated_at.isoformat(),
        "access_count": record.access_count,
        "last_accessed_at": _iso(record.last_accessed_at),
        "valid_from": _iso(record.valid_from),
        "valid_until": _iso(record.valid_until),
        "expires_at": _iso(record.expires_at),
        "language": record.language,
        "metadata": record.metadata,
        "content_hash": record.content_hash,
        "terms": list(counts),
        "term_counts": list(counts.values()),
        "term_total": sum(counts.values()),
    }


def record_from_row(row: Row, lineage: Sequence[MemoryScope], start: int = 0) -> MemoryRecord:
    """The record whose distance stands at `start` and whose columns follow, as seen_record names them."""
    (
        distance, record_id, layer, text, salience, kind, created_at, updated_at, access_count,
        last_accessed_at, valid_from, valid_until, expires_at, language, metadata,
    ) = row[start : start + 15]  # fmt: skip
    return MemoryRecord.trusted(
        record_id,
        lineage[distance],
        _LAYERS[layer],
        text,
        salience,
        kind,
        _utc(created_at),
        _utc(updated_at),
        access_count,
        last_accessed_at and _utc(last_accessed_at),
        valid_from and _utc(valid_from),
        valid_until and _utc(valid_until),
        expires_at and _utc(expires_at),
        language,
        EMPTY if metadata == "{}" else _parsed(metadata)[0],
    )


def observations_from_rows(rows: Iterable[Row], scope: MemoryScope) -> tuple[Observation, ...]:
    """The candidates of a search: all rows but its first."""
    lineage = lineage_of(scope)
    return tuple(
        Observation(
            record_from_row(row, lineage, start=5), row[5], _ROUTE_SETS[row[1]], row[2], row[3], row[4]
        )
        for row in rows
    )


def association_from_row(row: Row, lineage: Sequence[MemoryScope]) -> Association:
    """An edge with its target, as neighbours.sql names the columns."""
    return Association(row[0], record_from_row(row, lineage, start=3), row[1], row[2])


def turn_from_row(row: Row) -> ConversationTurn:
    """A turn, as recent_turns.sql names the columns."""
    return ConversationTurn(*row)


def _route_set(bits: int) -> frozenset[str]:
    return frozenset(route for place, route in enumerate(ROUTES) if bits >> place & 1)


# The bit set of search.sql, in the order of ROUTES.
_ROUTE_SETS: Mapping[int, frozenset[str]] = {bits: _route_set(bits) for bits in range(1 << len(ROUTES))}


def _utc(moment: datetime) -> datetime:
    # psycopg answers in the session's time zone, which is the host's business.
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
