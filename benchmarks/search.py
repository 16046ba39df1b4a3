"""Load, search and recall at three sizes, against bare statements: `python -m benchmarks.search`.

Starts an embedded PostgreSQL unless --dsn names one, in which it makes and drops the schemas
symfonic_benchmark and symfonic_benchmark_bare.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import loading
from benchmarks.data import ROWS, VISIBLE, Dataset
from benchmarks.database import SCHEMA, Connection, connected, run_each, running
from benchmarks.exact import Exact
from benchmarks.nearest import Nearest
from benchmarks.searching import Found, Speed, found, speed
from benchmarks.statements import bare
from benchmarks.timing import throughput
from symfonic_pg.memory import RETRIEVABLE_LAYERS, MemoryQuery
from symfonic_pg.memory.retrieval import RetrievalCoordinator
from symfonic_pg.postgres.executors.asyncpg import AsyncpgExecutor
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.postgres.sources import PostgresCandidateSource

TASKS = 16


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything, and print each part as soon as it is known."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    asyncio.run(_run(_options(arguments)))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--dsn", help="a server of your own instead of the embedded one")
    parser.add_argument("--data", type=Path, help="keep the embedded server's data here")
    parser.add_argument("--rows", type=int, default=ROWS, help="memories in all (default: %(default)s)")
    parser.add_argument("--questions", type=int, default=100, help="at each size (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of each throughput (default: %(default)s)"
    )
    parser.add_argument(
        "--loaded", action="store_true", help="ask what an earlier run has left, load nothing"
    )
    parser.add_argument("--keep", action="store_true", help="leave the schema for --loaded")
    return parser.parse_args(arguments)


async def _run(options: argparse.Namespace) -> None:
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    print(f"{machine}, {options.rows:,} memories")
    dataset = Dataset(options.rows)
    with running(options.dsn, options.data) as dsn:
        connection, scanning = await connected(dsn), await connected(dsn)
        try:
            print(await connection.fetchval(bare("version", schema=SCHEMA)))
            if not options.loaded:
                _print_load(await loading.measure(dsn, connection, dataset))
            await _ask(dsn, connection, scanning, dataset, options)
            if not options.keep:
                await run_each(connection, ["drop"], SCHEMA)
        finally:
            await connection.close()
            await scanning.close()


async def _ask(
    dsn: str, connection: Connection, scanning: Connection, dataset: Dataset, options: argparse.Namespace
) -> None:
    exact = Exact(scanning)
    await exact.prepare()
    asked = {name: dataset.questions(scope, options.questions) for name, scope in VISIBLE.items()}
    speeds = {name: await speed(connection, questions, exact) for name, questions in asked.items()}
    _print_speeds(speeds)
    _print_found({name: await found(connection, questions, exact) for name, questions in asked.items()})
    rates = {
        name: await _rates(dsn, questions, speeds[name].nearest, options.seconds)
        for name, questions in asked.items()
    }
    _print_rates(rates)


async def _rates(dsn: str, questions: Sequence[MemoryQuery], best: Nearest, seconds: float) -> list[float]:
    """Queries a second of the best bare statement, of search and of a whole retrieval."""
    executor = AsyncpgExecutor.connect(dsn, timeout=60, pool_max=TASKS)
    repository = MemoryRepository(executor, schema=SCHEMA)
    coordinator = RetrievalCoordinator(source=PostgresCandidateSource(repository, model=loading.MODEL))
    idle: list[Connection] = []
    for _ in range(TASKS):
        idle.append(await connected(dsn))
        await best.settle(idle[-1])

    async def nearest(question: MemoryQuery) -> None:
        connection = idle.pop()
        await best.fetch(connection, question)
        idle.append(connection)

    async def search(question: MemoryQuery) -> None:
        await repository.search(question, RETRIEVABLE_LAYERS, model=loading.MODEL)

    try:
        return [
            await throughput(questions, work, tasks=TASKS, seconds=seconds)
            for work in (nearest, search, coordinator.retrieve)
        ]
    finally:
        await executor.close()
        for connection in idle:
            await connection.close()


def _print_load(speed: loading.LoadSpeed) -> None:
    print("\nload, rows a second")
    print(f"  load                                     {speed.load:10,.0f}")
    print(f"  bare COPY of the same rows               {speed.copy:10,.0f}  ({speed.ratio:.2f} times load's)")
    print(f"  bare COPY without triggers               {speed.copy_without_triggers:10,.0f}")
    print(f"  the triggers, postings above all, are {speed.trigger_share:.0%} of the bare COPY")
    print(f"  the model's indexes took {speed.index_seconds:.0f} s")


def _print_speeds(speeds: dict[str, Speed]) -> None:
    print("\none at a time, ms" + "".join(f"{name + ' visible':>24s}" for name in speeds))
    print(" " * 20 + "             p50     p95" * len(speeds))
    rows: dict[str, Callable[[Speed], str]] = {
        "search": lambda one: str(one.search),
        "its statement, bare": lambda one: str(one.statement),
        "retrieve": lambda one: str(one.retrieve),
        "nearest vectors, bare": lambda one: str(one.nearest.times),
        "   by, recall": lambda one: f"{one.nearest.kind} {one.nearest.recall:.3f}",
        "candidates": lambda one: f"{one.candidates:.0f}",
        "search / statement": lambda one: f"{one.over_statement:.2f}",
        "search / nearest": lambda one: f"{one.over_nearest:.2f}",
    }
    for label, cell in rows.items():
        print(f"{label:22s}" + "".join(f"{cell(one):>22s}  " for one in speeds.values()))


def _print_found(shares: dict[str, Found]) -> None:
    print("\nrecall@20 against a sequential scan     vector route    whole answer")
    for name, one in shares.items():
        print(f"{name + ' visible':>22s}{one.route:30.3f}{one.answer:16.3f}   ({one.completeness})")


def _print_rates(rates: dict[str, list[float]]) -> None:
    print(f"\nqueries a second, {TASKS} tasks       nearest, bare     search   retrieve")
    for name, row in rates.items():
        print(f"{name + ' visible':>22s}        " + "".join(f"{rate:12.0f}" for rate in row))


if __name__ == "__main__":
    main()
