"""Retrieval in one place: everything from signals to the coordinated result."""

from __future__ import annotations

from symfonic_pg.memory.coordinator import CoordinatedRetrieval, RetrievalCoordinator
from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable, SchemaMismatch, SymfonicError
from symfonic_pg.memory.explanation import Contribution, Explanation
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.ports import MemoryRetrievalPort
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
from symfonic_pg.memory.sources import Candidate, CandidateSource, LexicalCandidateSource

__all__ = [
    "DEFAULT_WEIGHTS",
    "NO_RECORD",
    "RETRIEVABLE_LAYERS",
    "SIGNAL_NAMES",
    "Candidate",
    "CandidateSource",
    "Contribution",
    "CoordinatedRetrieval",
    "Explanation",
    "LexicalCandidateSource",
    "MemoryContractError",
    "MemoryRetrievalPort",
    "MemoryUnavailable",
    "RelevanceSignals",
    "RelevanceWeights",
    "RetrievalCoordinator",
    "RetrievalPolicy",
    "RetrievalResult",
    "RetrievedMemory",
    "SchemaMismatch",
    "ScopeBlend",
    "ScopeBlendMode",
    "SymfonicError",
    "cue_overlap",
    "words",
]
