"""JSON documents: checked and frozen copies, and containment with the meaning of PostgreSQL's jsonb @>."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, NoReturn

from symfonic_pg.memory.checks import broken_private, fault_position

MAX_DEPTH = 100
# Python writes no integer of more digits as text (sys.set_int_max_str_digits), and so no JSON.
_TOO_LARGE = 10**4300


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError("a stored document does not change; copy it first, as in dict(metadata)")


class FrozenObject(dict[str, Any]):
    """A JSON object that never changes; equal to the dict of the same content."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenObject, (dict(self),)

    def __copy__(self) -> FrozenObject:
        return self

    def __deepcopy__(self, memo: object) -> FrozenObject:
        return self


class FrozenArray(list[Any]):
    """A JSON array that never changes; equal to the list of the same content."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = _refuse
    pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenArray, (list(self),)

    def __copy__(self) -> FrozenArray:
        return self

    def __deepcopy__(self, memo: object) -> FrozenArray:
        return self


EMPTY = FrozenObject()


def document(value: object, field: str) -> FrozenObject:
    """A frozen deep copy of a JSON object: string keys, finite numbers, at most 100 levels deep.

    Tuples become arrays. Raises MemoryContractError, which tells where the fault is by ordinal numbers
    (2.0 is the first item of the third entry) and never quotes keys or values.
    """
    if type(value) is FrozenObject:
        return value
    if not isinstance(value, Mapping):
        raise broken_private(field, "a JSON object", value)
    return _object(value, _Root(field, value), ()) if len(value) else EMPTY


def trusted_document(value: Mapping[str, Any]) -> FrozenObject:
    """The frozen form of an object that was checked when it was stored; takes over what it can."""
    if type(value) is FrozenObject:
        return value
    return FrozenObject({key: _taken(item) for key, item in value.items()}) if value else EMPTY


def _taken(value: Any) -> Any:
    if isinstance(value, dict):
        return trusted_document(value)
    return FrozenArray(map(_taken, value)) if isinstance(value, list) else value


class _Root:
    """What an error tells about: the field and the whole document."""

    __slots__ = ("field", "value")

    def __init__(self, field: str, value: object) -> None:
        self.field = field
        self.value = value

    def broken(self, rule: str, path: tuple[int, ...]) -> Exception:
        return broken_private(self.field, rule, self.value, ".".join(map(str, path)))


def _object(value: Mapping[Any, Any], root: _Root, path: tuple[int, ...]) -> FrozenObject:
    items: dict[str, Any] = {}
    for position, (key, item) in enumerate(value.items()):
        here = (*path, position)
        if not isinstance(key, str):
            raise root.broken("a JSON object with string keys", here)
        items[_text(key, root, here)] = _frozen(item, root, here)
    return FrozenObject(items)


def _frozen(value: Any, root: _Root, path: tuple[int, ...]) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value, root, path)
    if isinstance(value, int):
        if not -_TOO_LARGE < value < _TOO_LARGE:
            raise root.broken("JSON with integers of at most 4300 digits", path)
        return int(value)
    if isinstance(value, float):
        number = float.__float__(value)
        if not isfinite(number):
            raise root.broken("JSON with finite numbers", path)
        return number
    if len(path) >= MAX_DEPTH:
        raise root.broken(f"JSON of at most {MAX_DEPTH} levels", path[:8])
    if isinstance(value, Mapping):
        return _object(value, root, path)
    if isinstance(value, list | tuple):
        return FrozenArray([_frozen(item, root, (*path, place)) for place, item in enumerate(value)])
    raise root.broken("JSON values alone", path)


def _text(value: str, root: _Root, path: tuple[int, ...]) -> str:
    text = str.__str__(value)
    if fault_position(text) is not None:
        raise root.broken("text without NUL and lone surrogates", path)
    return text


def contains(document: object, part: object) -> bool:
    """Whether a JSON document contains another one, as jsonb `document @> part` decides it.

    Objects contain by key, arrays as sets, scalars by equality where true is not 1 and 1 is 1.0. At the top
    alone an array also contains a bare scalar.
    """
    if isinstance(document, list | tuple) and not isinstance(part, Mapping | list | tuple):
        return any(_same(item, part) for item in document)
    return _contains(document, part)


def _contains(whole: object, part: object) -> bool:
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(
            key in whole and _contains(whole[key], item) for key, item in part.items()
        )
    if isinstance(part, list | tuple):
        return isinstance(whole, list | tuple) and all(
            any(_contains(mine, item) for mine in whole) for item in part
        )
    return _same(whole, part)


def _same(left: object, right: object) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right if type(left) is type(right) else _exact(left) == _exact(right)
    return not isinstance(left, Mapping | list | tuple) and left == right


def _exact(number: int | float) -> Decimal | int:
    # JSON text has the shortest decimal of a float: 1e23 means 10**23 there, which the float itself is not.
    return Decimal(repr(number)) if isinstance(number, float) else number
