"""Why a candidate was left out: sentences that carry the numbers which decided."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from symfonic_pg.memory.layers import MemoryLayer


class Reason(str):
    """A reason as text, with its facts beside it.

    `stage` is source, gate or selection, in the order in which they judge, or activation; `rule` is what
    applied; `value` and `bound` are the numbers compared, None where the rule compares none.
    """

    __slots__ = ("bound", "rule", "stage", "value")

    stage: str
    rule: str
    value: float | None
    bound: float | None

    def __new__(
        cls,
        text: str,
        stage: str = "source",
        rule: str = "source",
        value: float | None = None,
        bound: float | None = None,
    ) -> Reason:
        reason = super().__new__(cls, text)
        reason.stage = stage
        reason.rule = rule
        reason.value = value
        reason.bound = bound
        return reason


def outside_layers(layer: MemoryLayer, layers: Iterable[MemoryLayer]) -> Reason:
    """The layer is not one of those asked for and enabled."""
    return Reason(f"layer {layer} outside {', '.join(sorted(layers))}", "gate", "layer")


def not_visible(distance: int) -> Reason:
    """The scope does not lie on the query's own path."""
    return Reason(f"scope not visible from the query (distance {distance})", "gate", "scope")


def expired(expires_at: datetime, moment: datetime) -> Reason:
    """The memory's time was over."""
    return Reason(f"expired at {expires_at.isoformat()}, asked at {moment.isoformat()}", "gate", "expired")


def not_yet_valid(valid_from: datetime, moment: datetime) -> Reason:
    """The memory holds only later."""
    text = f"not valid before {valid_from.isoformat()}, asked at {moment.isoformat()}"
    return Reason(text, "gate", "validity")


def no_longer_valid(valid_until: datetime, moment: datetime) -> Reason:
    """The memory held only earlier."""
    return Reason(f"valid until {valid_until.isoformat()}, asked at {moment.isoformat()}", "gate", "validity")


def under_salience(salience: float, floor: float) -> Reason:
    """The memory matters too little."""
    return _under("salience", salience, "min_salience", floor)


def under_relevance(score: float, floor: float) -> Reason:
    """The memory fits too little."""
    return _under("score", score, "min_relevance", floor)


def duplicate(score: float, kept: float) -> Reason:
    """The same record came twice, and the other one stays."""
    if score == kept:
        text = f"duplicate: score {score:.2f} equals that of the same record kept"
    else:
        text = "duplicate: score {} under {} of the same record kept".format(*_told_apart(score, kept))
    return Reason(text, "gate", "duplicate", score, kept)


def over_limit(rank: int, limit: int) -> Reason:
    """Better ones fill the limit."""
    return Reason(f"rank {rank} over limit {limit}", "selection", "limit", rank, limit)


def over_characters(length: int, left: int, max_chars: int) -> Reason:
    """The text does not fit into what better ones left."""
    text = f"{length} characters over the {left} left of max_chars {max_chars}"
    return Reason(text, "selection", "max_chars", length, left)


def over_nodes(activation: float, max_nodes: int) -> Reason:
    """Stronger or nearer ones fill what an expansion may find."""
    text = f"activation {activation:.2f} came after max_nodes {max_nodes} were found"
    return Reason(text, "activation", "max_nodes", activation, max_nodes)


def _under(name: str, value: float, floor_name: str, floor: float) -> Reason:
    low, high = _told_apart(value, floor)
    return Reason(f"{name} {low} under {floor_name} {high}", "gate", floor_name, value, floor)


def _told_apart(low: float, high: float) -> tuple[str, str]:
    """Both numbers with as many decimals, at least two, as it takes to see which one is smaller."""
    for decimals in range(2, 18):
        texts = f"{low:.{decimals}f}", f"{high:.{decimals}f}"
        if texts[0] != texts[1]:
            return texts
    return repr(low), repr(high)
