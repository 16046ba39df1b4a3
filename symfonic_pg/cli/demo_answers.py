"""What the demo finds out: the answers to its questions, and that nobody sees more than their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations

from symfonic_pg.cli.demo_corpus import Corpus, DemoQuestion
from symfonic_pg.cli.shapes import (
    Shape,
    contributions_shape,
    explanation_shape,
    policy_shape,
    recall_shape,
    working_shape,
)
from symfonic_pg.memory import HydratedRecall, MemoryScope
from symfonic_pg.store import MemoryExplanation, MemoryStore

# Who looks for what is not theirs: another organisation, a colleague, what lies below.
_LOOKS = (
    ("org:kestrel/team:care/user:noah", "org:lumen"),
    ("org:lumen/team:support/user:mara", "org:kestrel"),
    ("org:lumen/team:support/user:mara", "org:lumen/team:support/user:tomas"),
    ("org:lumen", "org:lumen/team:support"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with its recall.

    `without_graph` says of each memory that associations alone brought what becomes of it without them.
    """

    question: DemoQuestion
    recalled: HydratedRecall
    explanations: tuple[MemoryExplanation, ...] = ()
    without_graph: Mapping[str, str] = field(default_factory=dict)

    def shape(self) -> Shape:
        """The recall as JSON."""
        return recall_shape(self.question.query, self.recalled)

    def question_shape(self) -> Shape:
        """What belongs to the question beyond the recall, as JSON."""
        return {
            "title": self.question.title,
            "why": self.question.why,
            "policy": policy_shape(self.question.policy),
            "activation": dict(self.question.activation),
            "working": working_shape(self.recalled.working),
            "explanations": [contributions_shape(memory.explain()) for memory in self.recalled.memories],
            "asked_about": [explanation_shape(one) for one in self.explanations],
            "without_graph": dict(self.without_graph),
        }


@dataclass(frozen=True, slots=True)
class Look:
    """One scope that asks, by their ids, for all memories at another and below: how many came back."""

    scope: str
    target: str
    memories: int
    found: int

    def shape(self) -> Shape:
        """The same as JSON."""
        return asdict(self)


async def answers_of(store: MemoryStore, corpus: Corpus) -> AsyncIterator[Answer]:
    """The answers to all questions, one after the other."""
    for question in corpus.questions:
        yield await _answer(_with(store, question), question)


async def looks_at(store: MemoryStore, corpus: Corpus) -> list[Look]:
    """What those see who ask for memories that are not theirs."""
    looks = []
    for scope, target in _LOOKS:
        ids = corpus.under(MemoryScope.parse(target))
        looks.append(Look(scope, target, len(ids), len(await store.get(scope, ids))))
    return looks


def in_common(answers: list[Answer]) -> list[tuple[Answer, Answer, int]]:
    """The pairs of answers to the same words in two organisations, with how many memories both met."""
    return [
        (one, other, len(_met(one) & _met(other)))
        for one, other in combinations(answers, 2)
        if one.question.query.cue == other.question.query.cue
        and one.question.query.scope.root != other.question.query.scope.root
    ]


async def _answer(store: MemoryStore, question: DemoQuestion) -> Answer:
    recalled = await store.recall(question.query)
    asked = [await store.explain(question.query, record_id) for record_id in question.explain]
    explanations = tuple(one for one in asked if one is not None)
    lit = [memory.record_id for memory in recalled.memories if memory.via]
    if not lit:
        return Answer(question, recalled, explanations)
    plain = replace(question, activation={"max_hops": 0})
    without = (await _with(store, plain).recall(question.query)).report
    fates = {record_id: without.explain(record_id) for record_id in lit}
    return Answer(
        question,
        recalled,
        explanations,
        {key: "found by no route" if fate is None else fate.reason for key, fate in fates.items()},
    )


def _with(store: MemoryStore, question: DemoQuestion) -> MemoryStore:
    """The same store under the settings of a question."""
    return MemoryStore(store.repository, question.settings(store.settings), dsn=store.dsn)


def _met(answer: Answer) -> set[str]:
    return {fate.record_id for fate in answer.recalled.report.fates}
