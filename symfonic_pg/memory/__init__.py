"""The vocabulary and the coordinator: pure Python, no input or output, the standard library only."""

from __future__ import annotations

from symfonic_pg.memory.coordinator import CoordinatedRetrieval, RetrievalCoordinator
from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable, SchemaMismatch, SymfonicError
from symfonic_pg.memory.explanation import Contribution, Explanation
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.observations import ROUTES, Observation, Observations
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.ports import MemoryRetrievalPort
from symfonic_pg.memory.reasons import Reason
from symfonic_pg.memory.recall import (
    ActivatedNode,
    ActivationLog,
    Association,
    AssociationSource,
    ConversationSource,
    ConversationTurn,
    HopSource,
    HydratedRecall,
    Hydrator,
    InMemoryAssociationSource,
    InMemoryConversationSource,
    RecallReport,
    RecordFate,
    SpreadingActivation,
    WorkingContext,
    WorkingWindow,
    memory_capabilities,
)
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord, RememberReport
from symfonic_pg.memory.relevance import (
    DEFAULT_WEIGHTS,
    SIGNAL_NAMES,
    RelevanceSignals,
    RelevanceWeights,
    ScopeBlend,
    ScopeBlendMode,
    cue_overlap,
    words,
)
from symfonic_pg.memory.results import NO_RECORD, RetrievalResult, RetrievedMemory
from symfonic_pg.memory.scope import MemoryScope, ScopeLevel
from symfonic_pg.memory.scoring import (
    GraphTraversal,
    MemoryNode,
    NodeId,
    RetrievalScorer,
    ScoringWeights,
    scope_specificity_score,
)
from symfonic_pg.memory.sources import Candidate, CandidateSource, LexicalCandidateSource

__all__ = [
    "DEFAULT_WEIGHTS",
    "NO_RECORD",
    "RETRIEVABLE_LAYERS",
    "ROUTES",
    "SIGNAL_NAMES",
    "ActivatedNode",
    "ActivationLog",
    "Association",
    "AssociationSource",
    "Candidate",
    "CandidateSource",
    "Contribution",
    "ConversationSource",
    "ConversationTurn",
    "CoordinatedRetrieval",
    "Explanation",
    "GraphTraversal",
    "HopSource",
    "HydratedRecall",
    "Hydrator",
    "InMemoryAssociationSource",
    "InMemoryConversationSource",
    "LexicalCandidateSource",
    "MemoryContractError",
    "MemoryLayer",
    "MemoryNode",
    "MemoryQuery",
    "MemoryRecord",
    "MemoryRetrievalPort",
    "MemoryScope",
    "MemoryUnavailable",
    "NodeId",
    "Observation",
    "Observations",
    "Reason",
    "RecallReport",
    "RecordFate",
    "RelevanceSignals",
    "RelevanceWeights",
    "RememberReport",
    "RetrievalCoordinator",
    "RetrievalPolicy",
    "RetrievalResult",
    "RetrievalScorer",
    "RetrievedMemory",
    "SchemaMismatch",
    "ScopeBlend",
    "ScopeBlendMode",
    "ScopeLevel",
    "ScoringWeights",
    "SpreadingActivation",
    "SymfonicError",
    "WorkingContext",
    "WorkingWindow",
    "cue_overlap",
    "memory_capabilities",
    "scope_specificity_score",
    "words",
]
