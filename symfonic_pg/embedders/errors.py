"""What goes wrong with an embedder: to its callers one thing, the vector route is unavailable."""

from __future__ import annotations

from symfonic_pg.memory.errors import SymfonicError


class EmbedderError(SymfonicError):
    """The embedder gave no vectors, or not the ones that were asked for.

    `model` names the embedder where it is known. A text itself never stands in the message.
    """

    def __init__(self, message: str, *, model: str | None = None) -> None:
        super().__init__(message)
        self.model = model


class EmbedderUnavailable(EmbedderError):
    """A passing failure (transport, timeout, 429, 5xx): the same call may succeed later.

    `retry_after` is the number of seconds that the endpoint asked to be left alone, if it did.
    """

    def __init__(self, message: str, *, model: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, model=model)
        self.retry_after = retry_after
