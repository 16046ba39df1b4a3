"""The two ways of a blocking call: on the spot where nothing waits, else over a bridge to an event loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from symfonic_pg.postgres.executors.completing import complete
from symfonic_pg.sync.bridge import Bridge, Call

BehindT = TypeVar("BehindT", covariant=True)
PartT = TypeVar("PartT")
Method: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]


class Way(Protocol[BehindT]):
    """How a call gets to the asynchronous object behind it, and the result back."""

    @property
    def behind(self) -> BehindT:
        """The asynchronous object."""
        ...

    def to(self, part: Callable[[BehindT], PartT]) -> Way[PartT]:
        """The way to something that belongs to that object."""
        ...

    def call(self, method: Method, args: Sequence[Any], named: Mapping[str, Any], *, streams: bool) -> Any:
        """The result of one of its methods; `streams` if that takes an asynchronous iterable as well."""
        ...


class Stepped(Way[BehindT]):
    """On the spot, in the caller's thread: for what stands on a blocking executor."""

    def __init__(self, behind: BehindT) -> None:
        self._behind = behind

    @property
    def behind(self) -> BehindT:
        """The object that it was made for."""
        return self._behind

    def to(self, part: Callable[[BehindT], PartT]) -> Way[PartT]:
        """On the spot as well."""
        return Stepped(part(self._behind))

    def call(self, method: Method, args: Sequence[Any], named: Mapping[str, Any], *, streams: bool) -> Any:
        """The result, without any waiting."""
        return complete(method(self._behind, *args, **named))


class Bridged(Way[BehindT]):
    """In the loop of a bridge; `find` gives the object that belongs to that loop."""

    def __init__(self, bridge: Bridge, find: Callable[[], BehindT]) -> None:
        self._bridge = bridge
        self._find = find

    @property
    def behind(self) -> BehindT:
        """The object that belongs to the bridge's present loop."""
        return self._find()

    def to(self, part: Callable[[BehindT], PartT]) -> Way[PartT]:
        """Over the same bridge."""
        return Bridged(self._bridge, lambda: part(self._find()))

    def call(self, method: Method, args: Sequence[Any], named: Mapping[str, Any], *, streams: bool) -> Any:
        """The result, when the loop has it."""
        behind = self._find()

        def begin(call: Call) -> Coroutine[Any, Any, Any]:
            def crossing(argument: Any) -> Any:
                if not _is_lazy(argument):
                    return argument
                return call.items(argument) if streams else list(argument)

            return method(
                behind, *map(crossing, args), **{name: crossing(value) for name, value in named.items()}
            )

        return self._bridge.run(begin)


def _is_lazy(argument: object) -> bool:
    """Whether going through it may do anything, which must then happen in the caller's thread."""
    return isinstance(argument, Iterable) and not isinstance(argument, (Collection, Mapping))
