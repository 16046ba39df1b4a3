"""A store that is open for as long as its bridge is, and opened anew in a forked child."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from symfonic_pg.store import MemoryStore
from symfonic_pg.sync.bridge import Bridge, inherit

Life = AbstractAsyncContextManager[MemoryStore]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A store, the context manager that closes it, and the loop to which both belong."""

    store: MemoryStore
    life: Life
    loop: asyncio.AbstractEventLoop


class Opening:
    """Enters what `enter` gives in the bridge's loop, once, and leaves it with `close`."""

    def __init__(self, bridge: Bridge, enter: Callable[[], Life]) -> None:
        self._bridge = bridge
        self._enter = enter
        self._opened: _Opened | None = None

    def store(self) -> MemoryStore:
        """The open store; the first call of a process opens it."""
        opened, loop = self._opened, self._bridge.loop
        if opened is not None and opened.loop is loop:
            return opened.store
        with self._bridge.lock:
            opened = self._opened
            if opened is None or opened.loop is not loop:
                inherit(opened)
                life = self._enter()
                store = self._bridge.run(lambda _: life.__aenter__())
                self._opened = opened = _Opened(store, life, loop)
        return opened.store

    def close(self) -> None:
        """Close what this process opened, and the bridge; a second call does nothing."""
        opened, self._opened = self._opened, None
        if opened is not None and self._bridge.runs(opened.loop):
            self._bridge.run(lambda _: _ended(opened))
        else:
            inherit(opened)
        self._bridge.close()


async def _ended(opened: _Opened) -> None:
    """Close the store, and what its embedder has opened in the bridge's loop, where nobody else could."""
    try:
        await opened.life.__aexit__(None, None, None)
    finally:
        close_embedder = getattr(opened.store.settings.embedder, "aclose", None)
        if close_embedder is not None:
            await close_embedder()
