"""The command `symfonic-pg`."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command with the arguments of this process; exits."""
    missing = [package for package in ("typer", "rich") if find_spec(package) is None]
    if missing:
        sys.exit(f"symfonic-pg needs {' and '.join(missing)}: pip install 'symfonic-pg[cli]'")
    from symfonic_pg.cli.app import app

    app()
