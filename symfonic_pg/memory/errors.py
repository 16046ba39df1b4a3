"""What goes wrong, as types: a broken contract, a store out of reach, a schema of another revision."""

from __future__ import annotations


class SymfonicError(Exception):
    """The root of every error that this package raises on purpose."""


class MemoryContractError(SymfonicError, ValueError):
    """A value breaks the vocabulary's rules; nothing was written.

    `field` names what was wrong, `rule` what it has to be, and `got` is the value. For text, cue, speaker,
    metadata, where and embeddings `got` describes the value (type, length, position of the fault) and never
    holds it. `position` is the place of the bad record in a batch, counted from 0. All are None where the
    raiser gave a message alone.
    """

    def __init__(
        self,
        message: str = "",
        *,
        field: str | None = None,
        rule: str | None = None,
        got: object = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message)
        self.field = field
        self.rule = rule
        self.got = got
        self.position = position


class MemoryUnavailable(SymfonicError, ConnectionError):
    """The store could not be asked: not an empty answer, but none."""


class SchemaMismatch(MemoryUnavailable):
    """The database holds no schema, or one of another revision than the code's.

    `expected` is the code's revision and `found` the database's, None where there is none.
    """

    def __init__(self, message: str = "", *, expected: str | None = None, found: str | None = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.found = found
