"""The command `symfonic-pg`."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from io import TextIOWrapper


def main() -> None:
    """Run the command with the arguments of this process; exits."""
    missing = [package for package in ("typer", "rich") if find_spec(package) is None]
    if missing:
        sys.exit(f"symfonic-pg needs {' and '.join(missing)}: pip install 'symfonic-pg[cli]'")
    for stream in (sys.stdout, sys.stderr):
        # Where the encoding has no such character, a question mark is better than an error.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    from symfonic_pg.cli.app import app

    app()
