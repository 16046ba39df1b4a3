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
from symfonic_pg.memory.sources import Candidate, CandidateSource, LexicalCandidateSource

__all__ = [
    "DEFAULT_WEIGHTS",
    "NO_RECORD",
    "RETRIEVABLE_LAYERS",
    "ROUTES",
    "SIGNAL_NAMES",
    "Candidate",
    "CandidateSource",
    "Contribution",
    "CoordinatedRetrieval",
    "Explanation",
    "LexicalCandidateSource",
    "MemoryContractError",
    "MemoryLayer",
    "MemoryQuery",
    "MemoryRecord",
    "MemoryRetrievalPort",
    "MemoryScope",
    "MemoryUnavailable",
    "Observation",
    "Observations",
    "Reason",
    "RelevanceSignals",
    "RelevanceWeights",
    "RememberReport",
    "RetrievalCoordinator",
    "RetrievalPolicy",
    "RetrievalResult",
    "RetrievedMemory",
    "SchemaMismatch",
    "ScopeBlend",
    "ScopeBlendMode",
    "ScopeLevel",
    "SymfonicError",
    "cue_overlap",
    "words",
]
