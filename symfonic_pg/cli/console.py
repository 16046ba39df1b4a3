"""What is printed, and where: answers on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from typing import Any

from rich.console import Console

# What a page is set for where nobody says how wide it is.
_PIPED_WIDTH = 100


def answers() -> Console:
    """The console for what was asked for."""
    return _console(stderr=False)


def notes() -> Console:
    """The console for messages and progress."""
    return _console(stderr=True)


def note(message: str) -> None:
    """One message on stderr, as it is."""
    notes().print(message, soft_wrap=True)


def print_json(document: Any) -> None:
    """One JSON document on stdout, and nothing else."""
    if sys.stdout is None:
        raise OSError("stdout is closed")
    # A terminal or file of another encoding gets escapes instead of an error.
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(document, ensure_ascii=not unicode, allow_nan=False, indent=2) + "\n")


@cache
def _console(*, stderr: bool) -> Console:
    # One for each stream: a message printed past the console of a moving bar would tear it.
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPED_WIDTH
    return console
