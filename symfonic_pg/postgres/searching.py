"""What a search sends: the cue cut into terms, in every language that may be met."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.postgres.rows import columns, json_text, scope_parameters
from symfonic_pg.terms import LANGUAGES, terms

# So many tenants' languages are kept in mind.
_TENANTS = 4096


class SpokenLanguages:
    """The languages in which each tenant's cues are cut: the store's own, and those that its records named.

    A cue must be cut as the texts were. Which languages a lineage holds is known only once it was searched;
    then they are kept, and a language that is not there after all changes nothing.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._met: dict[str, frozenset[str]] = {}

    def of(self, tenant: str) -> frozenset[str]:
        """The languages for this tenant, as far as they were met."""
        return self._met.get(tenant, frozenset()) | {self._own}

    def meet(self, tenant: str, languages: Iterable[str]) -> bool:
        """Keep what a search came across; whether any of it is new."""
        known = self.of(tenant)
        unmet = LANGUAGES.intersection(languages) - known
        if unmet:
            if len(self._met) >= _TENANTS:
                self._met.clear()
            self._met[tenant] = known | unmet
        return bool(unmet)


def search_parameters(
    query: MemoryQuery,
    layers: frozenset[MemoryLayer],
    *,
    fanout: int,
    model: str | None,
    vector: str | None,
    language: str,
    spoken: Iterable[str],
    only: Sequence[str] | None,
) -> tuple[object, ...]:
    """The parameters of search.sql in their order.

    `vector` is the query's embedding as text where `model` is known; the cue is cut in each of `spoken`;
    `only` are the records to look at in place of all routes.
    """
    cut = [(one, term) for one in sorted(spoken) for term in dict.fromkeys(terms(query.cue, one))]
    return (
        *scope_parameters(query.scope),
        sorted(layers),
        query.as_of or datetime.now(UTC),
        None if query.where is None else json_text(query.where),
        fanout,
        None if vector is None else model,
        vector,
        language,
        *columns(cut, 2),
        list(query.context_ids),
        only,
    )
