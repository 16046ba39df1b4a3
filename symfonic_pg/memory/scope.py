"""Where a memory lies and from where it is seen: root-first paths of levels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from symfonic_pg.memory.checks import MAX_ID_BYTES, MAX_KIND_BYTES, broken, name
from symfonic_pg.memory.errors import MemoryContractError

MAX_LEVELS = 16

# What would forge a level in the text form, and control characters (Unicode category Cc).
_RESERVED = re.compile(r"[%/:\x00-\x1f\x7f-\x9f]")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})?")


@dataclass(frozen=True, slots=True)
class ScopeLevel:
    """One level of a scope: a kind of 1 to 63 UTF-8 bytes and an id of 1 to 255.

    Neither is blank nor normalised: levels are equal where their code points are.
    """

    kind: str
    id: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", name(self.kind, "scope.kind", MAX_KIND_BYTES))
        object.__setattr__(self, "id", name(self.id, "scope.id", MAX_ID_BYTES))

    def __str__(self) -> str:
        return f"{_escaped(self.kind)}:{_escaped(self.id)}"


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """A root-first path of 1 to 16 levels, such as `org:acme/user:u1`.

    A query at a scope sees its own level and its ancestors, nothing else: no sibling, no descendant, no other
    tree. `str(scope)` is the text form, from which `parse` gives back an equal scope.
    """

    levels: tuple[ScopeLevel, ...]
    _text: str = field(init=False, repr=False, compare=False)
    _tenant: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        levels = _levels(self.levels)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "_text", "/".join(map(str, levels)))
        object.__setattr__(self, "_tenant", str(levels[0]))

    @classmethod
    def of(cls, *levels: ScopeLevel | tuple[str, str]) -> MemoryScope:
        """The scope of these levels, root first: `MemoryScope.of(("org", "acme"), ("user", "u1"))`."""
        return cls(levels)  # type: ignore[arg-type]

    @classmethod
    def parse(cls, text: str) -> MemoryScope:
        """The scope that a text form names.

        Any well-formed %XX escape is taken. Refused are a malformed escape or one that is no UTF-8, an empty
        level, a level without ':' or with a second one, more than 16 levels, and what no level may hold.
        """
        if not isinstance(text, str):
            raise broken("scope", "a text form such as org:acme/user:u1", text)
        return _parsed(str.__str__(text))

    def child(self, kind: str, id: str) -> MemoryScope:
        """The scope one level below."""
        return MemoryScope((*self.levels, ScopeLevel(kind, id)))

    @property
    def kind(self) -> str:
        """The kind of the lowest level."""
        return self.levels[-1].kind

    @property
    def id(self) -> str:
        """The id of the lowest level."""
        return self.levels[-1].id

    @property
    def depth(self) -> int:
        """The number of levels: 1 for a root."""
        return len(self.levels)

    @property
    def root(self) -> MemoryScope:
        """The scope of the first level alone."""
        return self if len(self.levels) == 1 else MemoryScope(self.levels[:1])

    @property
    def tenant(self) -> str:
        """The text form of the root: what tells one tenant from another."""
        return self._tenant

    @property
    def parent(self) -> MemoryScope | None:
        """The scope one level above, None for a root."""
        return None if len(self.levels) == 1 else MemoryScope(self.levels[:-1])

    def ancestors(self) -> tuple[MemoryScope, ...]:
        """The scopes above this one, nearest first, without itself."""
        return tuple(MemoryScope(self.levels[:depth]) for depth in range(len(self.levels) - 1, 0, -1))

    def distance(self, memory_scope: MemoryScope) -> int:
        """How far above this scope a memory lies: 0 here, n for n levels up, -1 where it is not visible."""
        if type(memory_scope) is not MemoryScope:
            memory_scope = scope_of(memory_scope, "memory_scope")
        mine, theirs = self._text, memory_scope._text
        if mine == theirs:
            return 0
        # '/' inside a kind or an id is escaped, so a text prefix that ends at one is a path prefix.
        if mine.startswith(theirs) and mine[len(theirs)] == "/":
            return len(self.levels) - len(memory_scope.levels)
        return -1

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"MemoryScope.parse({self._text!r})"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self._text == other._text if isinstance(other, MemoryScope) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)


def scope_of(value: object, field: str = "scope") -> MemoryScope:
    """The scope that a value names: a MemoryScope or its text form."""
    if isinstance(value, MemoryScope):
        return value
    if isinstance(value, str):
        return MemoryScope.parse(value)
    raise broken(field, "a MemoryScope or its text form", value)


def _levels(given: object) -> tuple[ScopeLevel, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise broken("scope.levels", "an iterable of ScopeLevel", given)
    levels = tuple(_level(item) for item in given)
    if not 1 <= len(levels) <= MAX_LEVELS:
        raise broken("scope.levels", f"1 to {MAX_LEVELS} levels", len(levels))
    return levels


def _level(given: object) -> ScopeLevel:
    if type(given) is ScopeLevel:
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        return ScopeLevel(*given)
    raise broken("scope.levels", "ScopeLevel or pairs of kind and id", given)


def _escaped(text: str) -> str:
    return _RESERVED.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)


# The few scopes of a result come with every row, and a scope never changes.
@lru_cache(maxsize=1024)
def _parsed(text: str) -> MemoryScope:
    parts = text.split("/", MAX_LEVELS)
    if len(parts) > MAX_LEVELS:
        raise broken("scope", f"at most {MAX_LEVELS} levels", text)
    return MemoryScope(tuple(_parsed_level(part, text) for part in parts))


def _parsed_level(part: str, text: str) -> ScopeLevel:
    kind, colon, id = part.partition(":")
    if not colon or ":" in id:
        raise broken("scope", "levels of the form kind:id, joined by '/'", text)
    return ScopeLevel(_unescaped(kind, text), _unescaped(id, text))


def _unescaped(part: str, text: str) -> str:
    if "%" not in part:
        return part
    try:
        return _ESCAPE.sub(_byte, part.encode()).decode()
    except (UnicodeError, MemoryContractError):
        raise broken("scope", "escaped by %XX of UTF-8 bytes", text) from None


def _byte(escape: re.Match[bytes]) -> bytes:
    if escape[1] is None:
        raise MemoryContractError("a malformed escape")
    return bytes.fromhex(escape[1].decode())
