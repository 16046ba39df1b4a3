"""The verbs of the async store and repository for callers that wait, each made from the original."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.store import MemoryStore
from symfonic_pg.sync.ways import Way

P = ParamSpec("P")
T = TypeVar("T")
BehindT = TypeVar("BehindT", covariant=True)


class Waiting(Generic[BehindT]):
    """Something whose verbs wait for those of another thing behind it."""

    _way: Way[BehindT]


def waited(
    method: Callable[Concatenate[BehindT, P], Coroutine[Any, Any, T]], *, streams: bool = False
) -> Callable[Concatenate[Waiting[BehindT], P], T]:
    """The twin of an async method that waits for it: same parameters, same documentation.

    `streams` where the method takes an asynchronous iterable as well as a plain one.
    """

    @wraps(method)
    def call(self: Waiting[BehindT], /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._way.call(method, args, kwargs, streams=streams)
        return result

    return call


def waited_each(
    method: Callable[Concatenate[BehindT, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Waiting[BehindT], P], Generator[T, None, None]]:
    """The twin of an async generator: a plain one."""

    @wraps(method)
    def each(self: Waiting[BehindT], /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        stream = method(self._way.behind, *args, **kwargs)

        async def following(_: Any) -> tuple[T] | None:
            async for item in stream:
                return (item,)
            return None

        async def closed(_: Any) -> None:
            await stream.aclose()

        try:
            while (item := self._way.call(following, (), {}, streams=False)) is not None:
                yield item[0]
        finally:
            self._way.call(closed, (), {}, streams=False)

    return each


class StoreVerbs(Waiting[MemoryStore]):
    """The verbs of MemoryStore."""

    recall = waited(MemoryStore.recall)
    retrieve = waited(MemoryStore.retrieve)
    explain = waited(MemoryStore.explain)
    remember = waited(MemoryStore.remember)
    load = waited(MemoryStore.load, streams=True)
    get = waited(MemoryStore.get)
    search = waited(MemoryStore.search)
    count = waited(MemoryStore.count)
    list = waited(MemoryStore.list)
    reinforce = waited(MemoryStore.reinforce)
    forget = waited(MemoryStore.forget)
    move = waited(MemoryStore.move)
    erase = waited(MemoryStore.erase)
    associate = waited(MemoryStore.associate)
    dissociate = waited(MemoryStore.dissociate)
    neighbours = waited(MemoryStore.neighbours)
    append_turns = waited(MemoryStore.append_turns)
    append_turn = waited(MemoryStore.append_turn)
    recent = waited(MemoryStore.recent)
    check = waited(MemoryStore.check)
    embed_pending = waited(MemoryStore.embed_pending)
    watch_pending = waited_each(MemoryStore.watch_pending)
    count_pending = waited(MemoryStore.count_pending)
    failed_embeddings = waited(MemoryStore.failed_embeddings)
    retry_embeddings = waited(MemoryStore.retry_embeddings)


class RepositoryVerbs(Waiting[MemoryRepository]):
    """The verbs of MemoryRepository."""

    search = waited(MemoryRepository.search)
    observe = waited(MemoryRepository.observe)
    get = waited(MemoryRepository.get)
    count = waited(MemoryRepository.count)
    list = waited(MemoryRepository.list)
    remember = waited(MemoryRepository.remember)
    load = waited(MemoryRepository.load, streams=True)
    register_model = waited(MemoryRepository.register_model)
    index_model = waited(MemoryRepository.index_model)
    models = waited(MemoryRepository.models)
    model = waited(MemoryRepository.model)
    find_embedded = waited(MemoryRepository.find_embedded)
    associate = waited(MemoryRepository.associate)
    dissociate = waited(MemoryRepository.dissociate)
    neighbours = waited(MemoryRepository.neighbours)
    hops = waited(MemoryRepository.hops)
    append_turns = waited(MemoryRepository.append_turns)
    recent = waited(MemoryRepository.recent)
    reinforce = waited(MemoryRepository.reinforce)
    forget = waited(MemoryRepository.forget)
    move = waited(MemoryRepository.move)
    erase = waited(MemoryRepository.erase)
