"""What an operator decides: layers, weights, blending and floors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symfonic_pg.memory.checks import broken, instance, share, whole
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer, layers_of
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.relevance import DEFAULT_WEIGHTS, RelevanceWeights, ScopeBlend

_put = object.__setattr__

_NO_BLEND = ScopeBlend()


@dataclass(frozen=True, slots=True)
class RetrievalPolicy:
    """How candidates are judged.

    `min_relevance` and `min_salience` are floors in [0, 1]: what lies strictly under one is dropped. The best
    `profile_slots` profile memories skip the relevance floor and come first. Raises MemoryContractError, also
    for the working layer: that is a conversation window, which WorkingWindow reads.
    """

    enabled_layers: frozenset[MemoryLayer] = RETRIEVABLE_LAYERS
    weights: RelevanceWeights = DEFAULT_WEIGHTS
    blend: ScopeBlend = _NO_BLEND
    min_relevance: float = 0.0
    min_salience: float = 0.0
    profile_slots: int = 1

    if TYPE_CHECKING:  # what construction takes is wider than what is kept

        def __init__(
            self,
            enabled_layers: Iterable[MemoryLayer | str] = RETRIEVABLE_LAYERS,
            weights: RelevanceWeights = DEFAULT_WEIGHTS,
            blend: ScopeBlend = _NO_BLEND,
            min_relevance: float = 0.0,
            min_salience: float = 0.0,
            profile_slots: int = 1,
        ) -> None: ...

    def __post_init__(self) -> None:
        _put(self, "enabled_layers", layers_of(self.enabled_layers, "enabled_layers"))
        if MemoryLayer.WORKING in self.enabled_layers:
            rule = "without working, a conversation window that is read by WorkingWindow and never searched"
            raise broken("enabled_layers", rule, ", ".join(sorted(self.enabled_layers)))
        instance(self.weights, RelevanceWeights, "weights")
        instance(self.blend, ScopeBlend, "blend")
        _put(self, "min_relevance", share(self.min_relevance, "min_relevance"))
        _put(self, "min_salience", share(self.min_salience, "min_salience"))
        _put(self, "profile_slots", whole(self.profile_slots, "profile_slots", 0))

    def effective_layers(self, query: MemoryQuery) -> frozenset[MemoryLayer]:
        """The layers that are both enabled and asked for."""
        return self.enabled_layers & query.layers
