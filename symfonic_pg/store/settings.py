"""What a MemoryStore can be told, once, for all the ways of opening one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypedDict

from symfonic_pg.embedders import BareText, Embedder, EmbedText
from symfonic_pg.memory import MemoryLayer, RetrievalPolicy

_BARE_TEXT = BareText()


class StoreOptions(TypedDict, total=False):
    """The keyword arguments that `connect`, `on` and `embedded` share; StoreSettings says what each means."""

    embedder: Embedder | None
    policy: RetrievalPolicy | None
    max_hops: int
    decay: float
    max_nodes: int
    recent_turns: int
    exclude_speakers: frozenset[str]
    schema: str
    timeout: float
    language: str
    embed_text: EmbedText
    fanout: int
    half_life: timedelta | Mapping[MemoryLayer, timedelta]
    cosine_share: float
    slow_recall: float
    embed_timeout: float | None


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How a store recalls and writes.

    `embedder` turns texts and cues into vectors; without one the vector route needs `query.embedding`.
    `policy` is that of every recall which brings none. Activation follows at most `max_hops` edges (0: none),
    each worth `decay`, to at most `max_nodes` memories. A recall shows the last `recent_turns` turns but
    those of `exclude_speakers`. `schema` is the store's schema, `timeout` the seconds that a call may take,
    `language` the text search configuration of records that name none, `embed_text` what of a record is
    embedded. `fanout`, `half_life` and `cosine_share` are those of PostgresCandidateSource. A recall that
    takes `slow_recall` seconds or more leaves one line in the log, without any text. Embedding 128 texts of
    a write may take `embed_timeout` seconds, any time if None; what takes longer stands as pending, as if
    the embedder had failed.
    """

    embedder: Embedder | None = None
    policy: RetrievalPolicy | None = None
    max_hops: int = 0
    decay: float = 0.5
    max_nodes: int = 10
    recent_turns: int = 0
    exclude_speakers: frozenset[str] = frozenset()
    schema: str = "symfonic"
    timeout: float = 10.0
    language: str = "english"
    embed_text: EmbedText = _BARE_TEXT
    fanout: int = 50
    half_life: timedelta | Mapping[MemoryLayer, timedelta] = timedelta(days=7)
    cosine_share: float = 0.5
    slow_recall: float = 1.0
    embed_timeout: float | None = 60.0
