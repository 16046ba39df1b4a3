"""Recall in one place: associations, spreading activation, the conversation window, the hydrated answer."""

from __future__ import annotations

from symfonic_pg.memory.activation import ActivatedNode, ActivationLog, Association
from symfonic_pg.memory.graph import AssociationSource, HopSource, InMemoryAssociationSource
from symfonic_pg.memory.hydration import HydratedRecall, Hydrator, memory_capabilities
from symfonic_pg.memory.report import RecallReport, RecordFate
from symfonic_pg.memory.spreading import SpreadingActivation
from symfonic_pg.memory.window import (
    ConversationSource,
    ConversationTurn,
    InMemoryConversationSource,
    WorkingContext,
    WorkingWindow,
)

__all__ = [
    "ActivatedNode",
    "ActivationLog",
    "Association",
    "AssociationSource",
    "ConversationSource",
    "ConversationTurn",
    "HopSource",
    "HydratedRecall",
    "Hydrator",
    "InMemoryAssociationSource",
    "InMemoryConversationSource",
    "RecallReport",
    "RecordFate",
    "SpreadingActivation",
    "WorkingContext",
    "WorkingWindow",
    "memory_capabilities",
]
