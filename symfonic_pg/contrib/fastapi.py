"""FastAPI: a store for the application's lifespan, a dependency, error answers, a health endpoint."""

# FastAPI reads the annotations of the functions in here as objects: they must not be postponed.

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.requests import HTTPConnection
from fastapi.responses import JSONResponse
from fastapi.websockets import WebSocket

from symfonic_pg.contrib.http import RETRY_AFTER, Answer, answer_to, health
from symfonic_pg.memory import MemoryContractError, MemoryUnavailable, SymfonicError
from symfonic_pg.store import MemoryStore

# Under this name the store is in app.state and in the lifespan's state.
STATE = "memory_store"

OpenStore = Callable[[], AbstractAsyncContextManager[MemoryStore]]
Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[Mapping[str, Any] | None]]

# What a websocket is closed with: "try again later" and "policy violation" (RFC 6455 and its registry).
_CLOSED_WITH = {503: 1013, 422: 1008}


def memory_lifespan(
    open_store: OpenStore, lifespan: Lifespan | None = None
) -> Callable[[FastAPI], AbstractAsyncContextManager[Mapping[str, Any]]]:
    """A lifespan that opens a store, `app.state.memory_store`, and closes it when the application ends.

    `open_store` is called once a start, such as `partial(MemoryStore.connect, DSN)`. `lifespan` is the
    application's own: it runs inside, finds the store there, and its state is kept.
    """

    @asynccontextmanager
    async def opened(app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        async with open_store() as store:
            setattr(app.state, STATE, store)
            try:
                async with nullcontext() if lifespan is None else lifespan(app) as state:
                    yield {**(state or {}), STATE: store}
            finally:
                delattr(app.state, STATE)

    return opened


async def memory_store(connection: HTTPConnection) -> AsyncIterator[MemoryStore]:
    """The store of the application, for one request or websocket."""
    # The lifespan's state reaches mounted applications; app.state is there whatever runs the lifespan.
    store = getattr(connection.state, STATE, None) or getattr(connection.app.state, STATE, None)
    if store is None:
        raise SymfonicError(
            "the application has no memory store: give it lifespan=memory_lifespan(…),"
            " or set app.state.memory_store"
        )
    yield store


MemoryStoreDep = Annotated[MemoryStore, Depends(memory_store)]


def memory_using(session: Callable[..., Any]) -> Callable[..., AsyncIterator[MemoryStore]]:
    """A dependency: the store inside the transaction of what the dependency `session` gives.

    Commit in the endpoint. FastAPI may leave a dependency only after the answer has gone out, too late to say
    that a commit failed.
    """

    async def memory_in_session(
        store: MemoryStoreDep, owner: Annotated[Any, Depends(session)]
    ) -> AsyncIterator[MemoryStore]:
        yield store.using(owner)

    return memory_in_session


def add_error_answers(app: FastAPI, *, retry_after: int = RETRY_AFTER) -> None:
    """Answer MemoryUnavailable with 503 and Retry-After (in seconds), MemoryContractError with 422.

    The bodies hold no text, id, scope or address; a websocket is closed with 1013 or 1008.
    """

    async def answered(connection: HTTPConnection, error: Exception) -> Any:
        assert isinstance(error, SymfonicError)
        answer = answer_to(error, retry_after=retry_after)
        if isinstance(connection, WebSocket):
            await connection.close(_CLOSED_WITH[answer.status])
            return None
        return _response(answer)

    # Starlette's types know a handler of requests or one of websockets, and call it for both.
    handler: Any = answered
    for kind in (MemoryUnavailable, MemoryContractError):
        app.add_exception_handler(kind, handler)


def health_router(path: str = "/health/memory", *, retry_after: int = RETRY_AFTER) -> APIRouter:
    """One GET endpoint: 200 where memories can be written and recalled now, else 503; it writes nothing."""
    router = APIRouter()

    @router.get(path, include_in_schema=False)
    async def memory_health(store: MemoryStoreDep) -> JSONResponse:
        return _response(await health(store, retry_after=retry_after))

    return router


def _response(answer: Answer) -> JSONResponse:
    return JSONResponse(answer.content, answer.status, dict(answer.headers))
