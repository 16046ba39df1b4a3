"""Which database an alias means, and how to reach it without Django's connection."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from django.db import connections
from django.db.utils import ConnectionDoesNotExist

# Arguments of psycopg.connect that are objects of this process or none of libpq's.
_NOT_LIBPQ = {"autocommit", "context", "cursor_factory", "prepare_threshold", "row_factory"}


def obstacle(alias: str) -> str | None:
    """Why a store cannot live in the database of an alias; None where it can."""
    try:
        connection = connections[alias]
    except ConnectionDoesNotExist:
        return f"DATABASES has no alias {alias!r}"
    if connection.vendor != "postgresql":
        return f"the database {alias!r} is {connection.vendor}: memories live in PostgreSQL"
    driver = connection.Database.__name__
    if driver != "psycopg":
        return (
            f"Django reaches {alias!r} through {driver}: symfonic_pg needs psycopg 3, which Django takes"
            " where it is installed: pip install 'symfonic-pg[django]'"
        )
    return None


def address_of(alias: str) -> str:
    """The DSN of an alias, as libpq reads it; holds the password."""
    parameters = connections[alias].get_connection_params()
    role = connections[alias].settings_dict["OPTIONS"].get("assume_role")
    if role:
        # What Django does by SET ROLE; a space ends an option.
        role = role.replace("\\", "\\\\").replace(" ", "\\ ")
        parameters["options"] = f"{parameters.get('options', '')} -c role={role}".strip()
    pairs = [
        f"{name}={quote(str(value), safe='')}"
        for name, value in parameters.items()
        if name not in _NOT_LIBPQ and value is not None
    ]
    return f"postgresql+psycopg:///?{'&'.join(pairs)}"


def prepares(alias: str) -> bool | None:
    """Whether the project lets psycopg prepare statements there; None where it does not say."""
    options: dict[str, Any] = connections[alias].settings_dict["OPTIONS"]
    return options["prepare_threshold"] is not None if "prepare_threshold" in options else None
