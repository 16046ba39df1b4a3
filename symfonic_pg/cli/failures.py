"""What goes wrong, as a line on stderr and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from symfonic_pg.cli.console import note
from symfonic_pg.memory import MemoryContractError, MemoryUnavailable, SymfonicError

FAILED = 1
# The same as for an option that does not exist: what was given is wrong.
REFUSED = 2
UNAVAILABLE = 3
INTERRUPTED = 130


class Commands(TyperGroup):
    """The commands, none of which ends in a traceback that its user could have caused."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the arguments name."""
        with reported():
            return super().invoke(ctx)


@contextmanager
def reported() -> Iterator[None]:
    """Turn what a command raises into a message and its exit code."""
    try:
        yield
    except MemoryContractError as error:
        _end(f"error: {error}", REFUSED, error)
    except MemoryUnavailable as error:
        _end(f"unavailable: {error}", UNAVAILABLE, error)
    except SymfonicError as error:
        _end(f"error: {error}", FAILED, error)
    except BrokenPipeError:
        raise
    except UnicodeError as error:
        # A byte of the command line that is no UTF-8 comes as a lone surrogate, which no driver takes.
        _end("error: what was given is not UTF-8", REFUSED, error)
    except OSError as error:
        _end(f"error: {error}", FAILED, error)
    except KeyboardInterrupt as error:
        _end("interrupted", INTERRUPTED, error)


def _end(message: str, code: int, cause: BaseException) -> None:
    note(message)
    raise typer.Exit(code) from cause
