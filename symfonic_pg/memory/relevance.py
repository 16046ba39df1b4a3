"""What a store reports about a memory, and what that is worth: signals, weights, blending, word overlap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, nextafter
from typing import TYPE_CHECKING, Any

from symfonic_pg.memory.checks import broken, number, plain_text, share, whole
from symfonic_pg.memory.tokens import word_set, words

__all__ = [
    "DEFAULT_WEIGHTS",
    "SIGNAL_NAMES",
    "RelevanceSignals",
    "RelevanceWeights",
    "ScopeBlend",
    "ScopeBlendMode",
    "cue_overlap",
    "words",
]

SIGNAL_NAMES = ("cue", "salience", "recency", "frequency", "proximity")
MAX_WEIGHT = 1e6

_put = object.__setattr__
_BELOW_HALF = nextafter(0.5, 0.0)


@dataclass(frozen=True, slots=True)
class RelevanceSignals:
    """What a source observed about one memory, each in [0, 1] or None.

    None is "this source cannot answer"; 0.0 is "asked, and it does not match". They are never
    interchangeable. A source clamps before it reports; anything else raises MemoryContractError.
    """

    cue: float | None = None
    salience: float | None = None
    recency: float | None = None
    frequency: float | None = None
    proximity: float | None = None

    def __post_init__(self) -> None:
        for name in SIGNAL_NAMES:
            value = getattr(self, name)
            if value is not None and not (type(value) is float and 0.0 <= value <= 1.0):
                _put(self, name, share(value, name))

    def present(self) -> Mapping[str, float]:
        """The signals that are not None, in the order of SIGNAL_NAMES."""
        return {name: value for name in SIGNAL_NAMES if (value := getattr(self, name)) is not None}

    def with_salience(self, salience: float | None) -> RelevanceSignals:
        """The same signals with a record's salience where the source gave none."""
        if salience is None or self.salience is not None:
            return self
        return trusted_signals(self.cue, salience, self.recency, self.frequency, self.proximity)


NO_SIGNALS = RelevanceSignals()


def trusted_signals(
    cue: float | None,
    salience: float | None,
    recency: float | None,
    frequency: float | None,
    proximity: float | None,
) -> RelevanceSignals:
    """Signals whose values are known to be floats in [0, 1]: hundreds are made for every query."""
    draft: Any = _Draft()
    draft.cue = cue
    draft.salience = salience
    draft.recency = recency
    draft.frequency = frequency
    draft.proximity = proximity
    draft.__class__ = RelevanceSignals
    signals: RelevanceSignals = draft
    return signals


class _Draft:
    """Signals in the making: their slots, filled by assignment, a third of the time of object.__setattr__."""

    __slots__ = RelevanceSignals.__slots__


@dataclass(frozen=True, slots=True)
class RelevanceWeights:
    """How much each signal counts: each in [0, 1e6], not all 0; only their ratios matter."""

    cue: float = 1.0
    salience: float = 0.5
    recency: float = 0.3
    frequency: float = 0.2
    proximity: float = 0.2
    scaled: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in SIGNAL_NAMES:
            _put(self, name, number(getattr(self, name), name, 0.0, MAX_WEIGHT))
        weights = tuple(getattr(self, name) for name in SIGNAL_NAMES)
        if not any(weights):
            raise broken("weights", "not all 0", 0.0)
        # Products with weights near the smallest float would be rounded away.
        scale = 2.0**900 if max(weights) < 2.0**-900 else 1.0
        _put(self, "scaled", tuple(weight * scale for weight in weights))

    def compose(self, signals: RelevanceSignals) -> float:
        """The weighted mean over the present signals, in [0, 1]; 0.0 when their weights sum to 0.

        An absent signal counts in neither numerator nor denominator.
        """
        cue, salience, recency, frequency, proximity = self.scaled
        sum_of_products = sum_of_weights = 0.0
        if (value := signals.cue) is not None:
            sum_of_products += cue * value
            sum_of_weights += cue
        if (value := signals.salience) is not None:
            sum_of_products += salience * value
            sum_of_weights += salience
        if (value := signals.recency) is not None:
            sum_of_products += recency * value
            sum_of_weights += recency
        if (value := signals.frequency) is not None:
            sum_of_products += frequency * value
            sum_of_weights += frequency
        if (value := signals.proximity) is not None:
            sum_of_products += proximity * value
            sum_of_weights += proximity
        return sum_of_products / sum_of_weights if sum_of_weights else 0.0


DEFAULT_WEIGHTS = RelevanceWeights()


class ScopeBlendMode(StrEnum):
    """Whether the height of a memory counts: not at all, as a factor, or so that what lies here leads."""

    OFF = "off"
    BLEND = "blend"
    BACKFILL = "backfill"


_MODES: dict[Any, ScopeBlendMode] = {mode.value: mode for mode in ScopeBlendMode}


@dataclass(frozen=True, slots=True)
class ScopeBlend:
    """What distance costs: the gate halves every `half_life_levels` levels and never falls under `floor`."""

    mode: ScopeBlendMode = ScopeBlendMode.OFF
    half_life_levels: float = 1.0
    floor: float = 0.0

    if TYPE_CHECKING:  # what construction takes is wider than what is kept

        def __init__(
            self,
            mode: ScopeBlendMode | str = ScopeBlendMode.OFF,
            half_life_levels: float = 1.0,
            floor: float = 0.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        mode = _MODES.get(self.mode) if isinstance(self.mode, str) else None
        if mode is None:
            raise broken("mode", f"one of {', '.join(_MODES)}", self.mode)
        _put(self, "mode", mode)
        _put(self, "half_life_levels", number(self.half_life_levels, "half_life_levels", 0.0, inf))
        if self.half_life_levels == 0.0:
            raise broken("half_life_levels", "above 0", 0.0)
        _put(self, "floor", share(self.floor, "floor"))

    def gate(self, d: int) -> float:
        """The factor of a memory `d` levels above the query, in [0, 1].

        1 at d = 0 and in mode OFF, else floor + (1 - floor) * 2^(-d / half_life_levels). A negative d, which
        means not visible, raises MemoryContractError in every mode.
        """
        if type(d) is not int or d < 0:
            d = whole(d, "distance", 0)
        if d == 0 or self.mode is ScopeBlendMode.OFF:
            return 1.0
        halvings: float = min(d, 1 << 53) / self.half_life_levels
        decay: float = 2.0**-halvings
        return self.floor + (1.0 - self.floor) * decay

    def rank_score(self, score: float, d: int) -> float:
        """What memories are ordered by, in [0, 1]: g = score * gate(d), put into its band.

        OFF and BLEND: g. BACKFILL: 0.5 + 0.5 g at d = 0, and above it 0.5 g, strictly below 0.5, so that
        every memory written here outranks every ancestor.
        """
        gate = self.gate(d)
        if not (type(score) is float and 0.0 <= score <= 1.0):
            score = share(score, "score")
        return self.band(score * gate, d)

    def band(self, gated: float, d: int) -> float:
        """The place of g = score * gate(d) among the memories of all levels."""
        if self.mode is not ScopeBlendMode.BACKFILL:
            return gated
        return 0.5 + 0.5 * gated if d == 0 else min(0.5 * gated, _BELOW_HALF)


def cue_overlap(cue: str, text: str) -> float:
    """The share of the cue's words that the text holds: |words(cue) & words(text)| / |words(cue)|.

    Never divided by the memory's own length; 1.0 for a cue without a word.
    """
    asked = word_set(plain_text(cue, "cue"))
    return len(asked.intersection(words(plain_text(text, "text")))) / len(asked) if asked else 1.0
