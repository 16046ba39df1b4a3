"""What tells the asynchronous stores that an ASGI server shuts down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from symfonic_pg.contrib.django.stores import close_async_stores

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class MemoryLifespan:
    """Django's ASGI application with the lifespan protocol, which Django has not: pools end with the server.

        application = MemoryLifespan(get_asgi_application())

    Without it a server that ends its event loop in an orderly way closes them too; the others leave that to
    the end of the process.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer the server's lifespan, and hand everything else on."""
        if scope["type"] != "lifespan":
            await self._application(scope, receive, send)
            return
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                await close_async_stores()
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return
