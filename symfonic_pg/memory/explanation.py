"""How a memory came to its rank: the numbers behind RetrievedMemory.explain()."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import Literal

from symfonic_pg.memory.relevance import (
    DEFAULT_WEIGHTS,
    SIGNAL_NAMES,
    RelevanceSignals,
    RelevanceWeights,
    ScopeBlend,
    ScopeBlendMode,
)

_NO_BLEND = ScopeBlend()


@dataclass(frozen=True, slots=True)
class Judgement:
    """By what a memory was judged (its signals, its source, or activation) and under which rules."""

    by: Literal["signals", "source", "activation"]
    weights: RelevanceWeights = DEFAULT_WEIGHTS
    blend: ScopeBlend = _NO_BLEND


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one signal gave to the score: value * weight / the sum of the weights of the present signals."""

    name: str
    value: float
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The way from signals to the final number.

    The contributions sum to `score`; `score` * `gate` = `gated`; its band makes `gated` the `rank_score`.
    `absent` names the signals that no source could answer, which count nowhere. `band` says in words what was
    done to `gated`.
    """

    record_id: str
    contributions: tuple[Contribution, ...]
    absent: tuple[str, ...]
    score: float
    gate: float
    gated: float
    band: str
    rank_score: float
    distance: int

    def lines(self) -> tuple[str, ...]:
        """The explanation as text, a line for each step."""
        steps = [
            f"  {part.name:<10} {part.value:.4f} at weight {part.weight:g} gives {part.contribution:.4f}"
            for part in self.contributions
        ]
        if self.absent:
            steps.append(f"  without    {', '.join(self.absent)}")
        return (
            f"{self.record_id!r} ranks at {self.rank_score:.4f}",
            *steps,
            f"  score {self.score:.4f} x gate {self.gate:.4f} at distance {self.distance} = {self.gated:.4f}",
            f"  {self.band} = {self.rank_score:.4f}",
        )

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain(
    record_id: str,
    score: float,
    rank_score: float,
    distance: int,
    signals: RelevanceSignals,
    judgement: Judgement,
) -> Explanation:
    """The explanation of a memory that was judged so.

    Where the weights do not give the score (somebody set it), the score itself is the one contribution, and
    counts as the source's.
    """
    blend = judgement.blend
    gate = blend.gate(distance)
    gated = score * gate
    band = _band(blend, distance)
    if blend.band(gated, distance) != rank_score:
        band = "rank score as given"
    parts: tuple[Contribution, ...]
    absent: tuple[str, ...] = ()
    if judgement.by == "signals" and isclose(judgement.weights.compose(signals), score, abs_tol=1e-9):
        parts = _shares(signals, judgement.weights)
        absent = tuple(name for name in SIGNAL_NAMES if getattr(signals, name) is None)
    else:
        name = "activation" if judgement.by == "activation" else "source"
        parts = (Contribution(name, score, 1.0, score),)
    return Explanation(record_id, parts, absent, score, gate, gated, band, rank_score, distance)


def _shares(signals: RelevanceSignals, weights: RelevanceWeights) -> tuple[Contribution, ...]:
    present = signals.present()
    scaled = dict(zip(SIGNAL_NAMES, weights.scaled, strict=True))
    total = sum(scaled[name] for name in present) or 1.0
    return tuple(
        Contribution(name, value, getattr(weights, name), scaled[name] * value / total)
        for name, value in present.items()
    )


def _band(blend: ScopeBlend, distance: int) -> str:
    if blend.mode is not ScopeBlendMode.BACKFILL:
        return f"taken as it is ({blend.mode})"
    return "0.5 + half of it (backfill, here)" if distance == 0 else "half of it (backfill, above)"
