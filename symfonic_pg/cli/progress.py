"""How far a long command has come: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from symfonic_pg.cli.console import notes


class Bar:
    """One bar; counts what is done, and what is done within the step under way."""

    def __init__(self, progress: Progress, description: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(description, total=total)

    def advance(self, count: int) -> None:
        """Count on within a step."""
        self._progress.advance(self._task, count)

    def reach(self, done: int) -> None:
        """Set what is done, whatever was counted on the way there."""
        self._progress.update(self._task, completed=done)


@contextmanager
def bar(description: str, total: int | None) -> Iterator[Bar]:
    """A bar on stderr for as long as the block lasts; total None where nobody knows it."""
    console = notes()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Bar(progress, description, total)
