"""The five kinds of memory, and which of them a search may return."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from symfonic_pg.memory.checks import broken


class MemoryLayer(StrEnum):
    """What a memory is about: facts, events, how to do things, what is still to come, or the talk itself."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"
    PROSPECTIVE = "prospective"
    WORKING = "working"


# The working layer is a conversation window: WorkingWindow reads it, no search returns it.
RETRIEVABLE_LAYERS: frozenset[MemoryLayer] = frozenset(MemoryLayer) - {MemoryLayer.WORKING}

_BY_NAME: dict[str, MemoryLayer] = {layer.value: layer for layer in MemoryLayer}
_RULE = f"one of {', '.join(_BY_NAME)}"


def layer_of(value: object, field: str = "layer") -> MemoryLayer:
    """The layer that a value names: a MemoryLayer or its string."""
    if type(value) is MemoryLayer:
        return value
    layer = _BY_NAME.get(value) if isinstance(value, str) else None
    if layer is None:
        raise broken(field, _RULE, value)
    return layer


def layers_of(value: object, field: str = "layers") -> frozenset[MemoryLayer]:
    """The set of layers that an iterable of layers or their strings names."""
    # A lone string would otherwise be taken letter by letter.
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise broken(field, "an iterable of layers", value)
    return frozenset(layer_of(item, field) for item in value)
