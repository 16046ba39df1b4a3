"""What PostgreSQL really did: the plans of a statement and of every statement inside its functions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

_SETTINGS = {
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_buffers": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
    "client_min_messages": "notice",
}


@dataclass(frozen=True)
class Node:
    """One node of an executed plan."""

    kind: str
    table: str | None
    index: str | None
    rows: int
    statement: str

    @classmethod
    def of(cls, plan: dict[str, Any], statement: str) -> Node:
        """The node; its rows are all that it read, also what its filter then removed, over all its loops."""
        read = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        return cls(
            plan["Node Type"],
            plan.get("Relation Name"),
            plan.get("Index Name"),
            round(read * plan["Actual Loops"]),
            statement,
        )


class Plans:
    """Every node of what ran on a connection since `clear`."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self.connection = connection
        self.nodes: list[Node] = []
        connection.add_log_listener(lambda _, message: self._note(message.message))

    @classmethod
    async def watching(cls, connection: asyncpg.Connection[Any], **settings: str) -> Plans:
        """A watch over a connection of a superuser; skips the test where the server has no auto_explain."""
        try:
            await connection.execute("LOAD 'auto_explain'")
        except asyncpg.UndefinedFileError:
            pytest.skip("this server has no auto_explain")
        plans = cls(connection)
        for name, value in (_SETTINGS | settings).items():
            await connection.execute(f"SET {name} = '{value}'")
        return plans

    async def of(self, run: Callable[[], Awaitable[object]], *, times: int = 1) -> list[Node]:
        """The nodes of the last of several runs: by then the plans that are kept are made."""
        for _ in range(times):
            self.nodes.clear()
            await run()
        # Notices arrive before the result, and are told in the event loop's next turn.
        await asyncio.sleep(0)
        return list(self.nodes)

    def _note(self, message: str) -> None:
        _, mark, text = message.partition("plan:\n")
        if mark:
            logged = json.loads(text)
            self.nodes.extend(_walk(logged["Plan"], logged["Query Text"]))


def scans(nodes: Sequence[Node], *tables: str) -> list[Node]:
    """The nodes that read these tables."""
    return [node for node in nodes if node.table in tables]


def told(nodes: Sequence[Node]) -> str:
    """The nodes as an assertion message shows them."""
    return "\n".join(
        f"{node.rows:10} {node.kind} {node.index or ''} {node.table} | {' '.join(node.statement.split()):.80}"
        for node in nodes
    )


def _walk(plan: dict[str, Any], statement: str) -> Iterator[Node]:
    yield Node.of(plan, statement)
    for child in plan.get("Plans", ()):
        yield from _walk(child, statement)
