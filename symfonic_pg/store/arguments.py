"""What a store's verbs take: scopes by name, queries in parts, one edge or many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symfonic_pg.memory import MemoryContractError, MemoryQuery, MemoryScope, RetrievalPolicy
from symfonic_pg.memory.recall import Association

Scope = MemoryScope | str


def asked_by(
    query: MemoryQuery | Scope,
    cue: str | RetrievalPolicy | None,
    policy: RetrievalPolicy | None,
    fields: Mapping[str, Any],
) -> tuple[MemoryQuery, RetrievalPolicy | None]:
    """A query and a policy, from either way of asking."""
    if isinstance(cue, RetrievalPolicy):
        cue, policy = None, cue
    if not isinstance(query, MemoryQuery):
        return MemoryQuery(scope_named(query), cue or "", **fields), policy
    if cue is not None or fields:
        raise MemoryContractError("a MemoryQuery holds its cue and fields already", field="query")
    return query, policy


def scope_named(scope: Scope) -> MemoryScope:
    """A scope, or the one that its text form names."""
    return MemoryScope.parse(scope) if isinstance(scope, str) else scope


def edges_of(edges: Association | Iterable[Association]) -> Iterable[Association]:
    """Edges, where one may be given alone."""
    return [edges] if isinstance(edges, Association) else edges
