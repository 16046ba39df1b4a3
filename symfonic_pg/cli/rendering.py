"""Recalls and explanations for people, in some 100 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from symfonic_pg.memory import (
    HydratedRecall,
    MemoryQuery,
    RecallReport,
    RecordFate,
    RetrievedMemory,
    WorkingContext,
)
from symfonic_pg.memory.explanation import Explanation
from symfonic_pg.memory.records import PROFILE
from symfonic_pg.memory.window import flattened
from symfonic_pg.store import MemoryExplanation

_LONGEST_TEXT = 500
_DROPPED_SHOWN = 3
_FACT, _ASIDE, _TITLE = "cyan", "dim", "bold"


def print_recall(
    console: Console, query: MemoryQuery, recalled: HydratedRecall, *, slots: int, explained: bool = False
) -> None:
    """A whole recall: window, memories, routes and what was left out; `explained` leaves out nothing."""
    print_window(console, recalled.working)
    print_memories(console, recalled.memories, slots=slots, explained=explained)
    print_report(console, recalled.report, shown=None if explained else _DROPPED_SHOWN)
    if not recalled.memories:
        console.print(f"nothing to recall at {query.scope}")


def print_window(console: Console, working: WorkingContext) -> None:
    """The lines of the conversation, if there are any."""
    for turn in working.turns:
        console.print(Text(turn.line(), style="green"))
    if working.degraded:
        console.print(Text("the conversation could not be read", style="yellow"))
    if working.turns:
        console.print()


def print_memories(
    console: Console, memories: Sequence[RetrievedMemory], *, slots: int, explained: bool = False
) -> None:
    """The memories in order, each with its text and how its score came about.

    `slots` profile memories, at most, came first whatever their rank.
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for rank, memory in enumerate(memories, 1):
        heading = _heading(memory, first=rank <= slots and memory.record.kind == PROFILE)
        body = Text("\n").join([heading, _text_of(memory), *_origin(memory, explained)])
        table.add_row(Text(str(rank), style=_TITLE), Text(f"{memory.rank_score:.3f}", style=_FACT), body)
    if memories:
        console.print(table)
        console.print()


def print_report(console: Console, report: RecallReport, *, shown: int | None = _DROPPED_SHOWN) -> None:
    """What the routes found, and what was left out and why: the first `shown`, or all."""
    rows: list[tuple[str, Text | str]] = []
    if report.note:
        rows.append(("no search", plain(report.note)))
    if report.routes or report.unavailable:
        rows.append(("found by", _routes(report)))
    dropped = [fate for fate in report.fates if not fate.returned]
    if dropped:
        rows.append(("left out", _tally(dropped)))
        for fate in dropped if shown is None else nearest(dropped, shown):
            rows.append(("", Text(f"{plain(fate.record_id)}  {plain(fate.reason)}", style=_ASIDE)))
    if report.degraded:
        rows.append(("degraded", Text("the associations could not be followed to the end", style="yellow")))
    console.print(labelled(rows))


def labelled(rows: Iterable[tuple[str, Text | str]]) -> Table:
    """Lines with labels before them."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style=_ASIDE, min_width=9)
    table.add_column(overflow="fold")
    for label, said in rows:
        table.add_row(label, said)
    return table


def print_explanation(console: Console, explanation: MemoryExplanation) -> None:
    """What a query makes of one memory."""
    console.print("\n".join(plain(line, keep_indent=True) for line in str(explanation).splitlines()))


def plain(text: str, *, keep_indent: bool = False) -> str:
    """Stored text as one line that cannot steer a terminal."""
    flat = flattened(text)
    if keep_indent:
        return " " * (len(text) - len(text.lstrip(" "))) + flat.lstrip(" ")
    return flat


def breakdown(explanation: Explanation) -> str:
    """How the contributions make the score, and what distance made of that."""
    counted = [part for part in explanation.contributions if part.weight] or explanation.contributions
    steps = " + ".join(f"{part.name} {part.contribution:.3f}" for part in counted)
    if len(counted) > 1:
        steps += f" = {explanation.score:.3f}"
    if explanation.gate != 1.0:
        steps += f", x gate {explanation.gate:.3f} = {explanation.gated:.3f}"
    if explanation.rank_score != explanation.gated:
        steps += f", {explanation.band} = {explanation.rank_score:.3f}"
    return steps


def nearest(dropped: Sequence[RecordFate], shown: int) -> list[RecordFate]:
    """Of each rule, the first few that it left out by the smallest margin."""

    def margin(fate: RecordFate) -> float:
        return abs((fate.value or 0.0) - (fate.threshold or 0.0))

    rules = dict.fromkeys(fate.rule for fate in dropped)
    return [
        fate
        for rule in rules
        for fate in sorted((fate for fate in dropped if fate.rule == rule), key=margin)[:shown]
    ]


def path_of(via: Iterable[str]) -> str:
    """The way by which a memory was reached."""
    return " -> ".join(map(plain, via))


def _heading(memory: RetrievedMemory, *, first: bool) -> Text:
    record = memory.record
    kind = f" {plain(record.kind)}" if record.kind else ""
    where = "here" if memory.distance == 0 else f"{memory.distance} up"
    slot = ", set first" if first else ""
    heading = Text(f"{plain(record.record_id)}  {record.layer}{kind}{slot}", style=_TITLE)
    return heading.append(f"  {where}, {plain(str(record.scope))}", style="not bold dim")


def _text_of(memory: RetrievedMemory) -> Text:
    text = plain(memory.record.text)
    if len(text) <= _LONGEST_TEXT:
        return Text(text)
    return Text(f"{text[:_LONGEST_TEXT]}… ({len(text):,} characters)")


def _origin(memory: RetrievedMemory, explained: bool) -> list[Text]:
    explanation = memory.explain()
    lines = [f"by {path_of(memory.via)}"] if memory.via else []
    if explained:
        lines += [plain(line, keep_indent=True)[2:] for line in explanation.lines()[1:]]
    else:
        lines.append(breakdown(explanation))
    return [Text(line, style=_ASIDE) for line in lines]


def _routes(report: RecallReport) -> str:
    complete = report.completeness
    ran = [f"{route} {count} {complete.get(route, '')}".rstrip() for route, count in report.routes.items()]
    return ", ".join([*ran, *(f"{route} could not run" for route in report.unavailable)])


def _tally(dropped: Sequence[RecordFate]) -> str:
    counts = Counter(fate.rule for fate in dropped)
    return f"{len(dropped)}: " + ", ".join(f"{count} by {rule}" for rule, count in counts.most_common())
