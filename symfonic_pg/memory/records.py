"""What is remembered and what is asked: MemoryRecord, MemoryQuery, and the report of a write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from symfonic_pg.memory import checks
from symfonic_pg.memory.documents import EMPTY, document, trusted_document
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer, layer_of, layers_of
from symfonic_pg.memory.scope import MemoryScope, scope_of
from symfonic_pg.memory.tokens import has_word
from symfonic_pg.memory.vectors import vector

MAX_TEXT = 100_000
MAX_LIMIT = 1000
# The kind that RetrievalPolicy.profile_slots looks for.
PROFILE = "profile"

_put = object.__setattr__


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One memory: a text at a scope, in a layer.

    `salience` in [0, 1] is how much it matters, None where nobody said. `kind` is free, up to 63 bytes;
    "profile" marks a profile memory. It is valid from `valid_from` until before `valid_until`, and expired
    from `expires_at` on. `language` names a text search configuration, None the store's. `metadata` is a JSON
    object and kept as a frozen copy. Datetimes are aware and kept in UTC. Raises MemoryContractError.
    """

    record_id: str
    scope: MemoryScope
    layer: MemoryLayer
    text: str
    salience: float | None = None
    kind: str = ""
    _: KW_ONLY
    created_at: datetime = None  # type: ignore[assignment]
    updated_at: datetime = None  # type: ignore[assignment]
    access_count: int = 0
    last_accessed_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    language: str | None = None
    metadata: Mapping[str, Any] = field(default=EMPTY)
    # Whether created_at was given or is the clock's: an update keeps the stored one where it was not.
    created_at_given: bool = field(init=False, compare=False, repr=False)

    if TYPE_CHECKING:  # what construction takes is wider than what is kept

        def __init__(
            self,
            record_id: str,
            scope: MemoryScope | str,
            layer: MemoryLayer | str,
            text: str,
            salience: float | None = None,
            kind: str = "",
            *,
            created_at: datetime | None = None,
            updated_at: datetime | None = None,
            access_count: int = 0,
            last_accessed_at: datetime | None = None,
            valid_from: datetime | None = None,
            valid_until: datetime | None = None,
            expires_at: datetime | None = None,
            language: str | None = None,
            metadata: Mapping[str, Any] = EMPTY,
        ) -> None: ...

    def __post_init__(self) -> None:
        _put(self, "record_id", checks.record_id(self.record_id))
        _put(self, "scope", scope_of(self.scope))
        _put(self, "layer", layer_of(self.layer))
        _put(self, "text", _text(self.text))
        if self.salience is not None:
            _put(self, "salience", checks.share(self.salience, "salience"))
        _put(self, "kind", checks.name(self.kind, "kind", checks.MAX_KIND_BYTES, least=0, blank=True))
        self._check_times()
        _put(self, "access_count", checks.whole(self.access_count, "access_count", 0, checks.MAX_COUNT))
        if self.language is not None:
            _put(self, "language", checks.name(self.language, "language", checks.MAX_KIND_BYTES))
        _put(self, "metadata", document(self.metadata, "metadata"))

    def _check_times(self) -> None:
        given = self.created_at is not None
        created_at = checks.moment(self.created_at, "created_at") if given else datetime.now(UTC)
        _put(self, "created_at_given", given)
        _put(self, "created_at", created_at)
        _put(self, "updated_at", checks.optional_moment(self.updated_at, "updated_at") or created_at)
        for name in ("last_accessed_at", "valid_from", "valid_until", "expires_at"):
            _put(self, name, checks.optional_moment(getattr(self, name), name))
        if self.valid_from and self.valid_until and self.valid_until < self.valid_from:
            raise checks.broken("valid_until", "not before valid_from", self.valid_until.isoformat())

    @classmethod
    def trusted(
        cls,
        record_id: str,
        scope: MemoryScope,
        layer: MemoryLayer,
        text: str,
        salience: float | None,
        kind: str,
        created_at: datetime,
        updated_at: datetime,
        access_count: int = 0,
        last_accessed_at: datetime | None = None,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        expires_at: datetime | None = None,
        language: str | None = None,
        metadata: Mapping[str, Any] = EMPTY,
    ) -> MemoryRecord:
        """A record from a store that checked it when it was written: nothing is checked again.

        Types must be exact (MemoryScope, MemoryLayer, aware datetimes); metadata is taken over.
        """
        draft: Any = _Draft()
        draft.record_id = record_id
        draft.scope = scope
        draft.layer = layer
        draft.text = text
        draft.salience = salience
        draft.kind = kind
        draft.created_at = created_at
        draft.updated_at = updated_at
        draft.access_count = access_count
        draft.last_accessed_at = last_accessed_at
        draft.valid_from = valid_from
        draft.valid_until = valid_until
        draft.expires_at = expires_at
        draft.language = language
        draft.metadata = trusted_document(metadata)
        draft.created_at_given = True
        draft.__class__ = cls
        record: MemoryRecord = draft
        return record

    @property
    def content_hash(self) -> str:
        """The sha256 of the text's UTF-8, in hex: tells whether a vector still belongs to its text."""
        return sha256(self.text.encode()).hexdigest()


class _Draft:
    """A record in the making: its slots, filled by assignment, a third of the time of object.__setattr__."""

    __slots__ = MemoryRecord.__slots__


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """One question at one scope.

    `cue` is what is asked in words, `embedding` the same as a vector (finite, not all zero); with neither the
    query asks nothing, which is a cold start. At most `limit` (1 to 1000) memories are returned, of at most
    `max_chars` characters in all. `context_ids` are the records that the conversation is about, `as_of` is
    the moment (None: now), `where` what the metadata must contain, as in jsonb `@>`. Raises
    MemoryContractError.
    """

    scope: MemoryScope
    cue: str = ""
    layers: frozenset[MemoryLayer] = RETRIEVABLE_LAYERS
    limit: int = 10
    max_chars: int | None = None
    embedding: tuple[float, ...] | None = None
    context_ids: tuple[str, ...] = ()
    as_of: datetime | None = None
    where: Mapping[str, Any] | None = None
    _asks_nothing: bool = field(init=False, compare=False, repr=False)

    if TYPE_CHECKING:  # what construction takes is wider than what is kept

        def __init__(
            self,
            scope: MemoryScope | str,
            cue: str = "",
            layers: Iterable[MemoryLayer | str] = RETRIEVABLE_LAYERS,
            limit: int = 10,
            max_chars: int | None = None,
            embedding: Sequence[float] | None = None,
            context_ids: Iterable[str] = (),
            as_of: datetime | None = None,
            where: Mapping[str, Any] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        _put(self, "scope", scope_of(self.scope))
        _put(self, "cue", checks.plain_text(self.cue, "cue"))
        _put(self, "layers", layers_of(self.layers))
        _put(self, "limit", checks.whole(self.limit, "limit", 1, MAX_LIMIT))
        if self.max_chars is not None:
            _put(self, "max_chars", checks.whole(self.max_chars, "max_chars", 0))
        if self.embedding is not None:
            _put(self, "embedding", vector(self.embedding))
        _put(self, "context_ids", checks.record_ids(self.context_ids, "context_ids"))
        _put(self, "as_of", checks.optional_moment(self.as_of, "as_of"))
        if self.where is not None:
            _put(self, "where", document(self.where, "where"))
        _put(self, "_asks_nothing", self.embedding is None and not has_word(self.cue))

    @property
    def asks_nothing(self) -> bool:
        """Whether there is no word in the cue and no embedding: then every candidate's cue signal is 1.0."""
        return self._asks_nothing

    def at(self, moment: datetime) -> MemoryQuery:
        """The same query with its moment settled."""
        if self.as_of is not None:
            return self
        settled = object.__new__(MemoryQuery)
        for name in _QUERY_FIELDS:
            _put(settled, name, getattr(self, name))
        _put(settled, "as_of", checks.moment(moment, "as_of"))
        return settled


_QUERY_FIELDS = tuple(MemoryQuery.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class RememberReport:
    """What a write did with its records, each counted once; `without_embedding` counts among them those
    that have none now."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    without_embedding: int = 0

    @property
    def total(self) -> int:
        """The records of the write."""
        return self.inserted + self.updated + self.unchanged

    def __add__(self, other: RememberReport) -> RememberReport:
        if not isinstance(other, RememberReport):
            return NotImplemented
        return RememberReport(
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.unchanged + other.unchanged,
            self.without_embedding + other.without_embedding,
        )


def _text(value: object) -> str:
    text = checks.plain_text(value, "text")
    if not 1 <= len(text) <= MAX_TEXT:
        raise checks.broken_private("text", f"1 to {MAX_TEXT} characters", text)
    if not text.strip():
        raise checks.broken_private("text", "not blank", text)
    return text
