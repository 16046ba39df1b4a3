"""A primary and a streaming replica of it, both the tests' own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import psycopg
import pytest

from symfonic_pg.postgres.account import ServiceAccount, service_account
from symfonic_pg.postgres.embedded import EmbeddedServer
from symfonic_pg.postgres.migrations import migrate
from tests.conftest import FAST, server_binaries, temporary_home

# The replica looks for a primary that was away more often than every five seconds.
FOLLOWING = {**FAST, "wal_retrieve_retry_interval": "100ms"}


@dataclass(frozen=True)
class Pair:
    """A migrated primary and its replica, each of which can be stopped and started."""

    primary: EmbeddedServer
    replica: EmbeddedServer
    dsn: str
    read_dsn: str

    def run(self, dsn: str, statement: str) -> object:
        with psycopg.connect(dsn, autocommit=True) as connection:
            cursor = connection.execute(statement)
            row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None

    def catch_up(self) -> None:
        """Wait until the replica shows what the primary has committed."""
        written = self.run(self.dsn, "SELECT pg_current_wal_insert_lsn()")
        deadline = time.monotonic() + 20
        while not self.run(self.read_dsn, f"SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn"):
            assert time.monotonic() < deadline, "the replica does not follow"
            time.sleep(0.02)

    def pause(self) -> None:
        """Keep the replica at what it shows now."""
        self.catch_up()
        self.run(self.read_dsn, "SELECT pg_wal_replay_pause()")

    def resume(self) -> None:
        self.run(self.read_dsn, "SELECT pg_wal_replay_resume()")
        self.catch_up()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Both run when a test begins; one that stops a server starts it again."""
    binaries = server_binaries()
    with ExitStack() as stack:
        one, two = stack.enter_context(temporary_home()), stack.enter_context(temporary_home())
        primary = stack.enter_context(EmbeddedServer(one, binaries=binaries, settings=FAST))
        migrate(primary.dsn)
        _copy(primary, one, two, binaries)
        replica = stack.enter_context(EmbeddedServer(two, binaries=binaries, settings=FOLLOWING))
        yield Pair(primary, replica, primary.dsn, replica.dsn)


def _copy(primary: EmbeddedServer, one: Path, two: Path, binaries: Path) -> None:
    """A base backup of the primary that follows it once it is started."""
    account = service_account(one / "data", binaries)
    if account is not None:
        _give(account, two)
    sockets = unquote(primary.dsn.partition("host=")[2].partition("&")[0])
    subprocess.run(
        [
            binaries / "pg_basebackup", "--host", sockets, "--username", "postgres", "--pgdata", two / "data",
            "--write-recovery-conf", "--wal-method", "stream", "--checkpoint", "fast", "--no-sync",
        ],
        check=True, cwd="/", timeout=60, capture_output=True,
        **(account.identity() if account else {}),
    )  # fmt: skip


def _give(account: ServiceAccount, home: Path) -> None:
    account.give(home)
    log = home / "server.log"
    log.touch(mode=0o600)
    os.chown(log, account.uid, account.gid)
