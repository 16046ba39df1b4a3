"""The command that keeps vectors up with their memories: embed."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.table import Table

from symfonic_pg.cli.console import answers, note, print_json
from symfonic_pg.cli.embedding import quiet_embedder
from symfonic_pg.cli.failures import UNAVAILABLE
from symfonic_pg.cli.objects import named_object
from symfonic_pg.cli.place import Place
from symfonic_pg.cli.progress import bar
from symfonic_pg.cli.rendering import plain
from symfonic_pg.cli.writing import JsonOption
from symfonic_pg.embedders import BareText, Embedder
from symfonic_pg.memory import MemoryContractError
from symfonic_pg.store import EmbedReport, FailedEmbedding, MemoryStore

# A watcher that has much to do says so this often, in seconds.
_EVERY = 10.0
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Model:
    """The options that say with what memories are embedded."""

    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="An embedder of your own, or a function that makes it; else the local model.",
        ),
    ] = None
    embed_text: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="What of a memory is embedded; else its text."),
    ] = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Embedder, Any]]:
        """The embedder, closed at the end if it can be, and the hook."""
        embedder = (
            quiet_embedder()
            if self.embedder is None
            else named_object(self.embedder, "--embedder", "embed")
        )
        if embedder is None:
            raise MemoryContractError(
                "the local model is not installed: pip install 'symfonic-pg[local]', or name an --embedder"
            )
        hook = (
            BareText()
            if self.embed_text is None
            else named_object(self.embed_text, "--embed-text", "version")
        )
        try:
            yield embedder, hook
        finally:
            if hasattr(embedder, "aclose"):
                await embedder.aclose()


@dataclass(frozen=True, slots=True)
class Work:
    """The options that say which memories, and how many at a time."""

    scope: Annotated[
        str | None,
        typer.Option(metavar="SCOPE", help="Only at this scope and below it; else all tenants."),
    ] = None
    batch_size: Annotated[int, typer.Option(metavar="N", help="Texts at once.")] = 64
    lease: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="How long a batch is this worker's; others wait so long."),
    ] = 300.0
    attempts: Annotated[
        int, typer.Option(metavar="N", help="A text that fails so often is set aside.")
    ] = 3

    def keywords(self) -> dict[str, Any]:
        """Them as embed_pending and watch_pending take them."""
        return {
            "scope": self.scope,
            "batch_size": self.batch_size,
            "lease": _duration(self.lease),
            "attempts": self.attempts,
        }


async def embed(
    place: Place,
    work: Work,
    model: Model,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until stopped.")] = False,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many memories; not with --watch.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="First make those pending again that were set aside.")
    ] = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="Embed nothing: list what was set aside, and why.")
    ] = False,
    as_json: JsonOption = False,
) -> int | None:
    """Embed the memories that have no vector, or one of an older text.

    Any number of these may run at once: each takes a batch for as long as its lease, and what a killed one
    had comes back when that runs out. A text that the embedder refuses is tried again, then set aside with
    its error until it changes; --failed lists these. With --json --watch there is one object a line. Exit
    code 3 where the embedder does not answer.
    """
    if watch and (limit is not None or failed):
        raise MemoryContractError("--watch goes on for ever: it takes neither --limit nor --failed")
    with _until_terminated():
        async with (
            model.opened() as (embedder, hook),
            place.store(embedder=embedder, embed_text=hook) as store,
        ):
            if failed:
                await _list_failed(store, work.scope, as_json=as_json)
                return None
            if retry:
                note(f"{await store.retry_embeddings(work.scope)} to be tried again")
            if watch:
                return await _watch(store, work, as_json=as_json)
            return await _sweep(store, work, limit, as_json=as_json)
    return None


async def _sweep(store: MemoryStore, work: Work, limit: int | None, *, as_json: bool) -> int | None:
    waiting = (await store.count_pending(work.scope)).waiting
    with bar("embedding", waiting if limit is None else min(waiting, limit)) as progress:
        report = await store.embed_pending(
            limit=limit, on_batch=lambda batch: progress.advance(batch.tried), **work.keywords()
        )
    if as_json:
        print_json(asdict(report))
    else:
        answers().print(summary(report), soft_wrap=True)
    if report.set_aside:
        note("set aside: symfonic-pg embed --failed says why")
    if report.unavailable is None:
        return None
    note(f"unavailable: {report.unavailable}")
    return UNAVAILABLE


async def _watch(store: MemoryStore, work: Work, *, as_json: bool) -> int | None:
    total, told = EmbedReport(), time.monotonic()
    async with aclosing(store.watch_pending(**work.keywords())) as reports:
        async for report in reports:
            if as_json:
                sys.stdout.write(json.dumps(asdict(report), ensure_ascii=True) + "\n")
                sys.stdout.flush()
                continue
            total += report
            if report.unavailable is not None:
                note(f"waiting: {report.unavailable}")
            elif report.remaining is not None or time.monotonic() - told > _EVERY:
                note(summary(total))
                total, told = EmbedReport(), time.monotonic()
    return None


async def _list_failed(store: MemoryStore, scope: str | None, *, as_json: bool) -> None:
    found: list[FailedEmbedding] = []
    while len(found) % _PAGE == 0:
        after = found[-1] if found else None
        page = await store.failed_embeddings(scope, without_embedding=True, limit=_PAGE, after=after)
        if not page:
            break
        found += page
    if as_json:
        print_json({"failed": [_shape(one) for one in found]})
        return
    table = Table("scope", "record", "reason", "attempts", "error", box=None, header_style="bold")
    for one in found:
        why = one.error or "the model has no vector for this text"
        table.add_row(plain(str(one.scope)), plain(one.record_id), one.reason, str(one.attempts), plain(why))
    answers().print(table if found else "nothing was set aside")


def summary(report: EmbedReport) -> str:
    """What embedding came to, as a line."""
    parts = {
        "embedded": report.embedded,
        "without an embedding": report.without_embedding,
        "changed meanwhile": report.changed,
        "failed": report.failed,
        "set aside": report.set_aside,
        "still pending": report.remaining,
    }
    always = {"embedded", "still pending"}
    return ", ".join(
        f"{count} {name}"
        for name, count in parts.items()
        if count or (count is not None and name in always)
    )


def _shape(one: FailedEmbedding) -> dict[str, Any]:
    return {
        "scope": str(one.scope),
        "record_id": one.record_id,
        "reason": one.reason,
        "attempts": one.attempts,
        "error": one.error,
        "tried_at": one.tried_at.isoformat(),
    }


def _duration(seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise MemoryContractError(f"--lease must be seconds, got {seconds}", field="lease") from None


@contextmanager
def _until_terminated() -> Iterator[None]:
    """End the block at SIGTERM, which a process manager sends: a worker gives back what it has and leaves."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    asked = False

    def end() -> None:
        nonlocal asked
        asked = True
        task.cancel()

    # Not on Windows, and only in the main thread.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGTERM, end)
    try:
        yield
    except asyncio.CancelledError:
        if not asked:
            raise
        note("stopped")
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGTERM)
