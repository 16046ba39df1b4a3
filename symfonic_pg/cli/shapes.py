"""The JSON that commands print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from symfonic_pg.cli.lines import FIELDS
from symfonic_pg.memory import (
    SIGNAL_NAMES,
    HydratedRecall,
    MemoryQuery,
    MemoryRecord,
    RecordFate,
    RelevanceSignals,
    RememberReport,
    RetrievalPolicy,
    RetrievedMemory,
    WorkingContext,
)
from symfonic_pg.memory.explanation import Explanation
from symfonic_pg.postgres.doctor import Finding
from symfonic_pg.store import MemoryExplanation

Shape = dict[str, Any]


def recall_shape(query: MemoryQuery, recalled: HydratedRecall) -> Shape:
    """A recall: what was asked, the memories in order, what was left out, and how the routes did."""
    result = recalled.retrieval.result
    return {
        "query": query_shape(query),
        "memories": [memory_shape(memory) for memory in result.memories],
        "dropped": [[record_id, str(reason)] for record_id, reason in result.dropped],
        "sources": dict(result.sources),
        "unavailable": list(result.unavailable),
        "completeness": dict(result.completeness),
    }


def query_shape(query: MemoryQuery) -> Shape:
    """A query; `as_of` is null where it was now."""
    return {
        "scope": str(query.scope),
        "cue": query.cue,
        "layers": sorted(query.layers),
        "limit": query.limit,
        "max_chars": query.max_chars,
        "context_ids": list(query.context_ids),
        "as_of": _time(query.as_of),
        "where": query.where,
    }


def memory_shape(memory: RetrievedMemory) -> Shape:
    """A memory of an answer; a signal that nobody could give is null."""
    record = memory.record
    return {
        "record_id": record.record_id,
        "scope": str(record.scope),
        "layer": record.layer.value,
        "kind": record.kind,
        "text": record.text,
        "score": memory.score,
        "rank_score": memory.rank_score,
        "distance": memory.distance,
        "signals": signals_shape(memory.signals),
        "via": list(memory.via),
    }


def signals_shape(signals: RelevanceSignals) -> Shape:
    """The five signals by name."""
    return {name: getattr(signals, name) for name in SIGNAL_NAMES}


def working_shape(working: WorkingContext) -> Shape:
    """The conversation window."""
    return {
        "turns": [asdict(turn) for turn in working.turns],
        "dropped": [[turn_id, str(reason)] for turn_id, reason in working.dropped],
        "degraded": working.degraded,
    }


def contributions_shape(explanation: Explanation) -> Shape:
    """How a memory came to its rank."""
    return {
        "record_id": explanation.record_id,
        "contributions": [asdict(part) for part in explanation.contributions],
        "absent": list(explanation.absent),
        "score": explanation.score,
        "gate": explanation.gate,
        "gated": explanation.gated,
        "band": explanation.band,
        "rank_score": explanation.rank_score,
        "distance": explanation.distance,
    }


def explanation_shape(explanation: MemoryExplanation) -> Shape:
    """What one query makes of one visible memory."""
    return {
        "record_id": explanation.record_id,
        "visible": True,
        "fetched": explanation.fetched,
        **fate_shape(explanation.fate),
        "distance": explanation.distance,
        "signals": signals_shape(explanation.signals),
        "score": explanation.score,
        "rank_score": explanation.rank_score,
        "last_score": explanation.last_score,
        "last_rank_score": explanation.last_rank_score,
    }


def fate_shape(fate: RecordFate) -> Shape:
    """Where a candidate ended; `reason` is null for one that was returned."""
    return {
        "stage": fate.stage,
        "rank": fate.rank,
        "reason": fate.reason or None,
        "via": list(fate.via),
    }


def policy_shape(policy: RetrievalPolicy) -> Shape:
    """How candidates were judged."""
    return {
        "enabled_layers": sorted(policy.enabled_layers),
        "weights": {name: getattr(policy.weights, name) for name in SIGNAL_NAMES},
        "blend": {
            "mode": policy.blend.mode.value,
            "half_life_levels": policy.blend.half_life_levels,
            "floor": policy.blend.floor,
        },
        "min_relevance": policy.min_relevance,
        "min_salience": policy.min_salience,
        "profile_slots": policy.profile_slots,
    }


def record_shape(record: MemoryRecord) -> Shape:
    """A record with the keys that a line of a file has."""
    values = {name: getattr(record, name) for name in FIELDS}
    values.update(scope=str(record.scope), layer=record.layer.value, metadata=dict(record.metadata))
    return {name: _time(value) if isinstance(value, datetime) else value for name, value in values.items()}


def report_shape(report: RememberReport, refused: int = 0) -> Shape:
    """What a write did; `refused` counts the lines that were not written, good ones of a bad batch too."""
    return {**asdict(report), "refused": refused}


def findings_shape(findings: Sequence[Finding]) -> Shape:
    """What the doctor found; `ok` is false where anything has failed."""
    ok = all(finding.status != "failure" for finding in findings)
    return {"ok": ok, "findings": [asdict(finding) for finding in findings]}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
