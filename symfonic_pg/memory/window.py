"""The conversation window: the last turns at exactly one scope, read beside the search and never searched."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from symfonic_pg.memory import checks
from symfonic_pg.memory.errors import MemoryUnavailable
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.scope import MemoryScope, scope_of

logger = logging.getLogger("symfonic_pg.memory")

MAX_TURN = 2**63 - 1
# What a 32-bit LIMIT can hold.
MAX_TURNS = 2**31 - 1

_put = object.__setattr__
# White space, the control characters (Cc), the line and paragraph separators, and Unicode's Bidi_Control.
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


def flattened(text: str) -> str:
    """The text with every run of white space, control and bidirectional control characters made one space."""
    return _BREAKS.sub(" ", text)


def layer_line(layer: MemoryLayer, text: str) -> str:
    """One line of a prompt, which no text can leave: `[layer] text`."""
    return flattened(f"[{layer.value}] {text}")


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One utterance of a conversation.

    `turn_id` is 1 to 255 UTF-8 bytes, unique at its scope; `turn`, an integer of 64 bits, is the place in the
    conversation, and turns of one place keep the order in which they arrived. Raises MemoryContractError.
    """

    turn_id: str
    speaker: str = ""
    text: str = ""
    turn: int = 0

    def __post_init__(self) -> None:
        _put(self, "turn_id", checks.record_id(self.turn_id, "turn_id"))
        _put(self, "speaker", checks.plain_text(self.speaker, "speaker"))
        _put(self, "text", checks.plain_text(self.text, "text"))
        _put(self, "turn", checks.whole(self.turn, "turn", -MAX_TURN - 1, MAX_TURN))

    def line(self) -> str:
        """`[working] speaker: text`, or `[working] text` without a speaker, always one line."""
        speaker = flattened(self.speaker).strip()
        return layer_line(MemoryLayer.WORKING, f"{self.speaker}: {self.text}" if speaker else self.text)


class ConversationSource(Protocol):
    """Something that remembers conversations.

    One on a connection that it does not own says so with `borrowed = True`, as an association source does.
    """

    async def recent(self, scope: MemoryScope, limit: int, /) -> Sequence[ConversationTurn]:
        """The last `limit` turns at exactly that scope, oldest first; MemoryUnavailable when out of reach."""
        ...


class InMemoryConversationSource:
    """Conversations held in this process."""

    def __init__(self) -> None:
        self._turns: dict[MemoryScope, dict[str, ConversationTurn]] = {}

    def append(self, scope: MemoryScope, turns: Iterable[ConversationTurn]) -> int:
        """Keep these turns and return how many are new; a turn_id known at the scope is left as it is."""
        kept = self._turns.setdefault(scope_of(scope), {})
        before = len(kept)
        for turn in turns:
            kept.setdefault(turn.turn_id, turn)
        return len(kept) - before

    async def recent(self, scope: MemoryScope, limit: int) -> Sequence[ConversationTurn]:
        """The last turns at exactly that scope, by place in the conversation and then by arrival."""
        if limit < 1:
            return []
        return sorted(self._turns.get(scope_of(scope), {}).values(), key=lambda turn: turn.turn)[-limit:]


@dataclass(frozen=True, slots=True)
class WorkingContext:
    """What the window showed: turns oldest first, and (turn_id, reason) for those left out.

    `degraded`: the conversation could not be read; that never fails the recall it belongs to.
    """

    turns: tuple[ConversationTurn, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    degraded: bool = False

    def __post_init__(self) -> None:
        _put(self, "turns", checks.members(self.turns, ConversationTurn, "turns"))
        _put(self, "dropped", tuple((turn_id, reason) for turn_id, reason in self.dropped))
        _put(self, "degraded", checks.flag(self.degraded, "degraded"))

    def render(self) -> str:
        """A line for each turn."""
        return "\n".join(turn.line() for turn in self.turns)


@dataclass(frozen=True, slots=True)
class WorkingWindow:
    """The reader of the working layer: the last `recent_turns` turns less some speakers; 0 asks nothing."""

    source: ConversationSource
    recent_turns: int = 0
    exclude_speakers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _put(self, "recent_turns", checks.whole(self.recent_turns, "recent_turns", 0, MAX_TURNS))
        speakers = checks.members(self.exclude_speakers, str, "exclude_speakers")
        _put(self, "exclude_speakers", frozenset(speakers))

    async def read(self, scope: MemoryScope) -> WorkingContext:
        """The window at exactly this scope; turns left out are not replaced by older ones."""
        if self.recent_turns == 0:
            return WorkingContext()
        try:
            turns = await self.source.recent(scope_of(scope), self.recent_turns)
        except MemoryUnavailable as unavailable:
            if getattr(self.source, "borrowed", False):
                raise
            logger.warning("the conversation window could not be read: %s", type(unavailable).__name__)
            return WorkingContext(degraded=True)
        judged = [(turn, self._refusal(turn)) for turn in list(turns)[-self.recent_turns :]]
        return WorkingContext(
            tuple(turn for turn, refusal in judged if refusal is None),
            tuple((turn.turn_id, refusal) for turn, refusal in judged if refusal is not None),
        )

    def _refusal(self, turn: ConversationTurn) -> str | None:
        if not flattened(turn.text).strip():
            return "no text"
        if turn.speaker in self.exclude_speakers:
            return f"speaker {turn.speaker!r} is excluded"
        return None
