"""What the demo remembers and asks: the files under corpus/ as values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.resources import files
from typing import Any

from symfonic_pg.cli.lines import record_of
from symfonic_pg.memory import (
    RETRIEVABLE_LAYERS,
    Association,
    ConversationTurn,
    MemoryQuery,
    MemoryRecord,
    MemoryScope,
    RelevanceWeights,
    RetrievalPolicy,
    ScopeBlend,
)
from symfonic_pg.store import StoreSettings


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """One recall of the demo, and what to notice about it.

    `activation` holds max_hops, decay and max_nodes, or nothing where the graph stays out of it. `explain`
    names memories that are worth asking about because they were not returned.
    """

    title: str
    why: str
    query: MemoryQuery
    policy: RetrievalPolicy
    activation: Mapping[str, Any]
    explain: tuple[str, ...]

    def settings(self, settings: StoreSettings) -> StoreSettings:
        """The settings of a store that answers it."""
        return replace(settings, policy=self.policy, **self.activation)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Memories, the edges and the turns by scope, and the questions."""

    records: tuple[MemoryRecord, ...]
    edges: Mapping[MemoryScope, list[Association]]
    turns: Mapping[MemoryScope, list[ConversationTurn]]
    questions: tuple[DemoQuestion, ...]

    def under(self, scope: MemoryScope) -> list[str]:
        """The ids of the memories at a scope and below it."""
        return [record.record_id for record in self.records if record.scope.distance(scope) >= 0]


def read_corpus() -> Corpus:
    """The corpus that ships with the command."""
    records = tuple(record_of(line) for line in _lines("memories.jsonl"))
    known = {record.record_id: record for record in records}
    edges: dict[MemoryScope, list[Association]] = {}
    for line in _lines("associations.jsonl"):
        edge = Association(line["source"], known[line["target"]], line["relationship"], line["weight"])
        edges.setdefault(MemoryScope.parse(line["scope"]), []).append(edge)
    turns: dict[MemoryScope, list[ConversationTurn]] = {}
    for line in _lines("turns.jsonl"):
        turns.setdefault(MemoryScope.parse(line.pop("scope")), []).append(ConversationTurn(**line))
    questions = tuple(map(_question, json.loads(_text("questions.json"))))
    return Corpus(records, edges, turns, questions)


def _question(given: Mapping[str, Any]) -> DemoQuestion:
    policy = dict(given.get("policy", {}))
    if "weights" in policy:
        policy["weights"] = RelevanceWeights(**policy["weights"])
    if "blend" in policy:
        policy["blend"] = ScopeBlend(**policy["blend"])
    query = MemoryQuery(
        given["scope"],
        given["cue"],
        layers=given.get("layers", RETRIEVABLE_LAYERS),
        limit=given["limit"],
        as_of=datetime.fromisoformat(given["as_of"]),
    )
    return DemoQuestion(
        title=given["title"],
        why=given["why"],
        query=query,
        policy=RetrievalPolicy(**policy),
        activation=given.get("activation", {}),
        explain=tuple(given.get("explain", ())),
    )


def _lines(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, _text(name).splitlines())


def _text(name: str) -> str:
    return (files("symfonic_pg.cli") / "corpus" / name).read_text(encoding="utf-8")
