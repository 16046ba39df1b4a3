"""Commands that write: remember and forget."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from symfonic_pg.cli.asking import Scope
from symfonic_pg.cli.console import answers, note, print_json
from symfonic_pg.cli.embedding import NoEmbed, WatchedEmbedder, local_embedder
from symfonic_pg.cli.failures import REFUSED
from symfonic_pg.cli.lines import Batch, Fault, read_batches, reason_of
from symfonic_pg.cli.place import Place
from symfonic_pg.cli.progress import Bar, bar
from symfonic_pg.cli.shapes import report_shape
from symfonic_pg.memory import MemoryContractError, RememberReport
from symfonic_pg.store import MemoryStore

# A file of nothing but faults should not fill the terminal.
_FAULTS_SHOWN = 100

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


async def remember(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Memories as JSON lines; - reads stdin.")],
    place: Place,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model of the embeddings that the lines bring."),
    ] = None,
    no_embed: NoEmbed = False,
    as_json: JsonOption = False,
) -> int | None:
    """Remember what a file of JSON lines holds.

    Each line is an object with the fields of MemoryRecord: record_id, scope, layer and text, and as needed
    salience, kind, language, metadata, valid_from, valid_until, expires_at, created_at, updated_at. Lines are
    written in batches of 1,000; a bad line is reported and nothing of its batch is written.
    """
    embedder = local_embedder(no_embed)
    with _opened(file) as (name, raw), bar(f"remembering {name}", _lines_of(file)) as progress:
        watched = None if embedder is None else WatchedEmbedder(embedder, progress.advance)
        if watched is not None and model not in (None, watched.model):
            # The file's vectors are another model's, so that memories without one must wait for that model.
            watched = None
        async with place.store(embedder=watched) as store:
            writer = _Writer(store, name, model, progress)
            batches = read_batches(raw, vectors=model is not None)
            while batch := _next(batches):
                await writer.write(batch)
    writer.finish(as_json=as_json)
    return REFUSED if writer.faults else None


async def forget(
    record_ids: Annotated[list[str], typer.Argument(metavar="ID…", help="The memories to delete.")],
    scope: Scope,
    place: Place,
    as_json: JsonOption = False,
) -> None:
    """Delete memories that lie exactly at a scope."""
    async with place.store() as store:
        forgotten = await store.forget(scope, record_ids)
    if as_json:
        print_json({"forgotten": forgotten})
    else:
        answers().print(f"{forgotten} forgotten")


@dataclass
class _Writer:
    """Writes the batches of one file and keeps the books."""

    store: MemoryStore
    name: str
    model: str | None
    progress: Bar
    report: RememberReport = field(default_factory=RememberReport)
    refused: int = 0
    faults: int = 0

    async def write(self, batch: Batch) -> None:
        """Write one batch, or report its faults and leave it out."""
        faults = list(batch.faults)
        if not faults:
            try:
                self.report += await self._load(batch)
            except MemoryContractError as error:
                position, reason = reason_of(error, [line.record for line in batch.lines])
                if position is None:
                    raise
                faults = [Fault(batch.lines[position].number, reason)]
        if faults:
            self.refused += len(batch.lines) + len(batch.faults)
            self._report(faults)
        self.progress.reach(batch.last)

    async def _load(self, batch: Batch) -> RememberReport:
        vectors = [line.embedding for line in batch.lines]
        items = [(line.record, line.embedding) for line in batch.lines]
        dimension = next((len(vector) for vector in vectors if vector is not None), None)
        embedder = self.store.settings.embedder
        if self.model is None or dimension is None or embedder is not None:
            return await self.store.load(items, batch_size=max(1, len(items)))
        if await self.store.repository.model(self.model) is None:
            await self.store.repository.register_model(self.model, dimension)
        return await self.store.load(items, model=self.model, batch_size=len(items))

    def _report(self, faults: list[Fault]) -> None:
        for fault in faults:
            self.faults += 1
            if self.faults <= _FAULTS_SHOWN:
                note(f"{self.name}:{fault.number}: {fault.reason}")

    def finish(self, *, as_json: bool) -> None:
        """Say what was done."""
        if self.faults > _FAULTS_SHOWN:
            note(f"… and {self.faults - _FAULTS_SHOWN} more bad lines")
        if as_json:
            print_json(report_shape(self.report, self.refused))
            return
        report = self.report
        answers().print(
            f"{report.inserted} inserted, {report.updated} updated, {report.unchanged} unchanged;"
            f" {report.without_embedding} of them without an embedding"
        )
        if self.refused:
            note(f"{self.refused} not written: each batch of 1,000 lines is written whole or not at all")


def _next(batches: Iterator[Batch]) -> Batch | None:
    """The next batch; Ctrl-C ends a read that waits for input, which the loop's handler would sit out."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return next(batches, None)
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _opened(file: str) -> Iterator[tuple[str, BinaryIO]]:
    """The name for messages, and the lines."""
    if file == "-":
        if sys.stdin is None:
            raise OSError("stdin is closed")
        yield file, sys.stdin.buffer
        return
    with Path(file).open("rb") as raw:
        yield file, raw


def _lines_of(file: str) -> int | None:
    """How many lines the bar has to go; None for what can be read only once."""
    path = Path(file)
    if file == "-" or not path.is_file():
        return None
    with path.open("rb") as raw:
        return sum(1 for _ in raw)
