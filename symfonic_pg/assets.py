"""Where the SQL and the migration scripts are, in a wheel and in a checkout alike."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from symfonic_pg.memory.errors import SymfonicError

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent


@cache
def asset_dir(name: Literal["sql", "alembic"]) -> Path:
    """The folder that holds the packaged files of that name.

    A wheel carries it inside the package, an editable install has it at the top of the checkout.
    SymfonicError if it is in neither place.
    """
    packaged = _PACKAGE / f"_{name}"
    if packaged.is_dir():
        return packaged
    # In site-packages the `alembic` beside us is the library: a checkout is told by its pyproject.toml.
    checkout = _CHECKOUT / name
    if (_CHECKOUT / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    raise SymfonicError(f"the installation of symfonic-pg is incomplete: its folder {name!r} is missing")
