"""What of a record is embedded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from symfonic_pg.memory.records import MemoryRecord


class EmbedText(Protocol):
    """Says which text stands for a record when it is embedded.

    `version` is stored with each vector; a vector of another version is stale. So it changes whenever
    the same record would give another text.
    """

    @property
    def version(self) -> str:
        """Names this way of making the text; "" is the bare text."""

    def __call__(self, record: MemoryRecord) -> str:
        """The text to embed."""


@dataclass(frozen=True, slots=True)
class BareText:
    """Embeds the record's text alone: the default."""

    @property
    def version(self) -> str:
        """Always ""."""
        return ""

    def __call__(self, record: MemoryRecord) -> str:
        """The record's text."""
        return record.text


@dataclass(frozen=True, slots=True)
class SpeakerAndDate:
    """Puts who said it and when in front: "2026-05-04 Ana: the text".

    For short turns of a conversation this finds far more by cosine than the bare text. Both come from the
    metadata, under the keys `speaker` and `date`; what is missing, blank or not a text is left out. A
    vector becomes stale with the text and the version only: a metadata change alone leaves it as it is.
    """

    speaker: str = "speaker"
    date: str = "date"

    @property
    def version(self) -> str:
        """Names the two keys."""
        return f"speaker-date-1:{self.speaker}:{self.date}"

    def __call__(self, record: MemoryRecord) -> str:
        """The record's text after its date and speaker."""
        found = (_text(record.metadata, key) for key in (self.date, self.speaker))
        front = " ".join(filter(None, found))
        return f"{front}: {record.text}" if front else record.text


def _text(metadata: Mapping[str, Any], key: str) -> str:
    value = metadata.get(key)
    return value.strip() if isinstance(value, str) else ""
