"""manage.py memory_embed"""

from __future__ import annotations

import asyncio
import signal
from contextlib import aclosing, suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from symfonic_pg.contrib.django.configuration import configured
from symfonic_pg.contrib.django.stores import connected_store
from symfonic_pg.store import EmbedReport, MemoryStore


class Command(BaseCommand):
    """The store's embed_pending, with the embedder of SYMFONIC_PG_EMBEDDER.

    On a connection of its own: in a transaction of Django's, locks would be held while the model runs.
    """

    help = "Embed the memories that have no current vector; any number of these may run at once."

    def add_arguments(self, parser: CommandParser) -> None:
        """What is embedded, and for how long."""
        parser.add_argument("--database", metavar="ALIAS", help="The alias, else SYMFONIC_PG_DATABASE's.")
        parser.add_argument("--scope", help="Only at this scope and below it: org:acme/user:u1.")
        parser.add_argument("--limit", type=int, metavar="N", help="At most so many memories.")
        parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="Texts at once.")
        parser.add_argument("--watch", action="store_true", help="Go on until it is stopped.")
        parser.add_argument("--retry", action="store_true", help="Try those again that were set aside.")

    def handle(self, *args: Any, database: str | None, watch: bool, retry: bool, **options: Any) -> None:
        """Embed, and say what it came to; CommandError where the embedder did not answer."""
        configuration = configured()
        if configuration.store.embedder is None:
            raise CommandError("SYMFONIC_PG_EMBEDDER names no embedder")

        async def run() -> None:
            async with connected_store(database or configuration.database, configuration) as store:
                if retry:
                    self.stdout.write(f"{await store.retry_embeddings(options['scope'])} to be tried again")
                await (self._watch(store, options) if watch else self._sweep(store, options))

        with suppress(KeyboardInterrupt, asyncio.CancelledError):
            asyncio.run(_until_terminated(run()))

    async def _sweep(self, store: MemoryStore, options: dict[str, Any]) -> None:
        report = await store.embed_pending(
            scope=options["scope"],
            limit=options["limit"],
            batch_size=options["batch_size"],
            on_batch=self._progress if options["verbosity"] > 1 else None,
        )
        self.stdout.write(_summary(report))
        if report.unavailable:
            raise CommandError(report.unavailable)

    async def _watch(self, store: MemoryStore, options: dict[str, Any]) -> None:
        reports = store.watch_pending(scope=options["scope"], batch_size=options["batch_size"])
        async with aclosing(reports):
            async for report in reports:
                self._progress(report)

    def _progress(self, report: EmbedReport) -> None:
        if report.unavailable:
            self.stderr.write(report.unavailable)
        elif report.tried:
            self.stdout.write(_summary(report))


async def _until_terminated(work: Any) -> None:
    """Run until SIGTERM, which a process manager sends: a worker that is cancelled gives back what it has."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError, ValueError):
        # Not on Windows, and only in the main thread.
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    await task


def _summary(report: EmbedReport) -> str:
    parts = {
        "embedded": report.embedded,
        "without a vector": report.without_embedding,
        "changed meanwhile": report.changed,
        "failed": report.failed,
        "set aside": report.set_aside,
        "remaining": report.remaining,
    }
    return ", ".join(f"{count} {name}" for name, count in parts.items() if count or name == "embedded")
