"""Data source names: the forms that people have in their settings, brought to the one that drivers read."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote

from symfonic_pg.memory.errors import MemoryContractError

_FORM = re.compile(r"(?P<scheme>postgres(?:ql)?)(?:\+(?P<driver>\w+))?://(?P<rest>.*)", re.DOTALL)
_DRIVERS = ("asyncpg", "psycopg")
_RULE = "postgresql://user@host/database, also with postgres:, postgresql+asyncpg: or postgresql+psycopg:"

# What libpq understands and asyncpg would send to the server as a setting, which then refuses the connection.
_LIBPQ_ALONE = {
    "connect_timeout",
    "channel_binding",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "load_balance_hosts",
    "requirepeer",
    "require_auth",
    "sslcertmode",
    "sslcompression",
    "sslcrldir",
    "sslsni",
    "tcp_user_timeout",
}


def normalise(dsn: str) -> str:
    """The same address as `postgresql://…`, its query parameters, escapes and socket paths kept as they are.

    Takes postgresql:// and postgres://, each also with SQLAlchemy's +asyncpg or +psycopg, whose `ssl=`
    becomes libpq's `sslmode=`. MemoryContractError, which never repeats the value, for anything else.
    """
    uri = f"postgresql://{_parsed(dsn)['rest']}"
    return _mapped(uri, lambda key, pair: f"sslmode{pair.removeprefix('ssl')}" if key == "ssl" else pair)


def driver_of(dsn: str) -> str | None:
    """The driver that the DSN itself names, 'asyncpg' or 'psycopg', None where it leaves that open."""
    return _parsed(dsn)["driver"]


def for_asyncpg(dsn: str) -> str:
    """`normalise`, without the parameters that only libpq knows."""
    return _mapped(normalise(dsn), lambda key, pair: None if key in _LIBPQ_ALONE else pair)


def redacted(dsn: str) -> str:
    """The DSN for messages and logs, every password in it replaced by ***; takes any text and never fails."""
    # Up to the last @, since a password may hold unescaped ones: too much hidden is better than too little.
    hidden = re.sub(r"(?<=://)(.*)@", _without_password, dsn, count=1, flags=re.DOTALL)
    return re.sub(r"(?i)\b((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^&\s]*)", r"\1***", hidden)


def _without_password(found: re.Match[str]) -> str:
    user, separator, _ = found[1].partition(":")
    return f"{user}{':***' if separator else ''}@"


def _parsed(dsn: str) -> re.Match[str]:
    found = _FORM.fullmatch(dsn) if isinstance(dsn, str) else None
    if found is None or found["driver"] not in (None, *_DRIVERS):
        raise MemoryContractError(f"dsn must be {_RULE}", field="dsn", rule=_RULE)
    return found


def _mapped(dsn: str, change: Callable[[str, str], str | None]) -> str:
    """Apply `change` to each `key=value` of the query; it gives the pair to keep, or None to leave it out."""
    address, separator, query = dsn.partition("?")
    if not separator:
        return dsn
    pairs = [change(unquote(pair.partition("=")[0]), pair) for pair in query.split("&")]
    kept = "&".join(pair for pair in pairs if pair)
    return f"{address}?{kept}" if kept else address
