"""The demo on a terminal: each question, its answer, and what to notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from symfonic_pg.cli.demo_answers import Answer, Look, in_common
from symfonic_pg.cli.demo_corpus import DemoQuestion
from symfonic_pg.cli.rendering import labelled, print_explanation, print_memories, print_report, print_window
from symfonic_pg.memory import (
    DEFAULT_WEIGHTS,
    RETRIEVABLE_LAYERS,
    SIGNAL_NAMES,
    RetrievalPolicy,
    ScopeBlendMode,
)

_TITLE, _ASIDE, _NOTICE = "bold cyan", "dim", "yellow"


def print_answer(console: Console, number: int, total: int, answer: Answer) -> None:
    """One question and what came back."""
    question = answer.question
    console.print()
    console.rule(Text(f"{number} of {total}  {question.title}", style=_TITLE), align="left")
    console.print(_asked(question))
    console.print()
    print_window(console, answer.recalled.working)
    print_memories(console, answer.recalled.memories, slots=question.policy.profile_slots)
    print_report(console, answer.recalled.report)
    if answer.without_graph:
        fates = [f"{record_id}  {reason}" for record_id, reason in answer.without_graph.items()]
        labels = ["no graph", *[""] * (len(fates) - 1)]
        console.print(labelled(zip(labels, fates, strict=True)))
    for explanation in answer.explanations:
        console.print()
        print_explanation(console, explanation)
    console.print()
    console.print(labelled([("notice", Text(question.why, style=_NOTICE))]))


def print_isolation(console: Console, answers: list[Answer], looks: Sequence[Look]) -> None:
    """What was seen of others' memories, which is nothing."""
    console.print()
    console.rule(Text("What nobody sees", style=_TITLE), align="left")
    for one, other, shared in in_common(answers):
        scopes = " and ".join(str(answer.question.query.scope.root) for answer in (one, other))
        console.print(f"The same question in {scopes}: {shared} memories in common, returned or dropped.")
    console.print("Asked by their ids for all memories at a scope and below it:")
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("who asks", "for all at or below"):
        table.add_column(title, header_style=_ASIDE, overflow="fold")
    for title in ("there are", "come back"):
        table.add_column(title, header_style=_ASIDE, justify="right")
    for look in looks:
        table.add_row(look.scope, look.target, str(look.memories), str(look.found))
    console.print(table)


def print_summary(console: Console, seconds: Mapping[str, float]) -> None:
    """How long it took."""
    console.print()
    steps = ", ".join(f"{step} {taken:.1f} s" for step, taken in seconds.items())
    console.print(Text(f"{sum(seconds.values()):.1f} s in all: {steps}", style=_ASIDE))


def _asked(question: DemoQuestion) -> Table:
    query = question.query
    asked: dict[str, Text | str] = {
        "asked at": str(query.scope),
        "cue": Text(query.cue or "(nothing)", style="bold"),
        "judged by": _policy(question.policy),
    }
    bounds = [f"limit {query.limit}"]
    if query.as_of is not None:
        bounds.insert(0, f"as of {query.as_of:%d %B %Y %H:%M} UTC")
    if query.layers != RETRIEVABLE_LAYERS:
        bounds.append(f"layers {', '.join(sorted(query.layers))}")
    if question.activation:
        settings = ", ".join(f"{name} {value}" for name, value in question.activation.items())
        bounds.append(f"activation {settings}")
    asked["within"] = "; ".join(bounds)
    return labelled(asked.items())


def _policy(policy: RetrievalPolicy) -> str:
    weights = ", ".join(f"{name} {getattr(policy.weights, name):g}" for name in SIGNAL_NAMES)
    said = [f"{'default ' if policy.weights == DEFAULT_WEIGHTS else ''}weights {weights}"]
    if policy.blend.mode is not ScopeBlendMode.OFF:
        said.append(f"{policy.blend.mode}, half-life {policy.blend.half_life_levels:g} levels")
    if policy.min_relevance:
        said.append(f"min_relevance {policy.min_relevance:g}")
    return "; ".join(said)
