"""One PostgreSQL data directory and the programs that serve it: create, start, find, stop."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from symfonic_pg.memory.errors import MemoryUnavailable, SymfonicError
from symfonic_pg.postgres.account import ServiceAccount, service_account

# The longest path of a Unix socket that every system takes is 103 bytes; the file name needs 16 of them.
_SOCKET_DIR_BYTES = 86
# What a shell would read inside the double quotes that pg_ctl puts around a path.
_SHELL_CHARACTERS = frozenset('"$`\\\n')
_POLL_SECONDS = 0.02
_LOG_LINES = 12


class Postmaster(NamedTuple):
    """What a running server wrote about itself into its data directory."""

    pid: int
    port: int
    socket_dir: str
    status: str


@dataclass(frozen=True)
class Cluster:
    """A private server: `binaries` serve the data under `home`, on a Unix socket for its owner alone.

    `settings` are PostgreSQL settings for the running server, `timeout` is in seconds for each step.
    """

    home: Path
    binaries: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 60.0

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    def ensure_running(self) -> str:
        """Bring the server up, wherever it stands, and give its DSN.

        The caller holds the lock that keeps every other starter out. MemoryUnavailable if it stays down.
        """
        if set(str(self.home)) & _SHELL_CHARACTERS:
            raise SymfonicError(f"{self.home} cannot be the path of a server: pg_ctl hands it to a shell")
        account = service_account(self.data, self.binaries)
        self._initialise(account)
        deadline = time.monotonic() + self.timeout
        while time.monotonic() < deadline:
            postmaster = self._postmaster()
            if postmaster is None:
                self._start(account)
            elif postmaster.status == "ready":
                return _dsn(postmaster)
            else:
                time.sleep(_POLL_SECONDS)
        waited = f"{self.timeout:g} s"
        raise MemoryUnavailable(f"the server under {self.home} did not start in {waited}; {self._tail()}")

    def stop(self) -> None:
        """Stop the server if it runs; open transactions are rolled back, committed ones are safe."""
        if self._postmaster() is not None:
            account = service_account(self.data, self.binaries)
            self._run(account, "pg_ctl", "-D", str(self.data), "-w", "-m", "fast", "stop")
            if not self._sockets.is_relative_to(self.home):
                shutil.rmtree(self._sockets, ignore_errors=True)

    def _initialise(self, account: ServiceAccount | None) -> None:
        version = self.data / "PG_VERSION"
        if version.is_file():
            self._check_version(version.read_text().strip())
            return
        if self.data.exists():
            raise SymfonicError(f"{self.data} exists and holds no PostgreSQL data: choose another path")
        # Made beside its place and renamed, so that a start that was killed halfway leaves no half-made data.
        unfinished = self.home / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self.log.touch(mode=0o600)
        if account is not None:
            account.give(unfinished)
            account.give(self.log)
        arguments = ["--encoding=UTF8", "--no-locale", "--auth=trust", "--username=postgres"]
        if self.settings.get("fsync") == "off":
            arguments.append("--no-sync")
        self._run(account, "initdb", "-D", str(unfinished), *arguments)
        unfinished.rename(self.data)

    def _check_version(self, written: str) -> None:
        printed = subprocess.check_output([self.binaries / "postgres", "--version"], text=True)
        installed = printed.split()[2].split(".")[0]
        if written != installed:
            raise SymfonicError(
                f"the data under {self.home} were written by PostgreSQL {written}, the installed server is"
                f" {installed}: dump them with the old one and restore them into a new path"
            )

    def _start(self, account: ServiceAccount | None) -> None:
        sockets = self._make_sockets(account)
        # What is left of a server that is gone: PostgreSQL itself refuses to start when its process id lives
        # on in some other program, as it easily does after a container's restart.
        for remains in (self.data / "postmaster.pid", *sockets.glob(".s.PGSQL.*")):
            remains.unlink(missing_ok=True)
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(sockets),
            "unix_socket_permissions": "0700",
            # Room for building an index in parallel that does not come from /dev/shm, of which containers
            # have 64 MB; it is taken only when it is used.
            "min_dynamic_shared_memory": "160MB",
            **self.settings,
        }
        options = " ".join(shlex.quote(f"--{name}={value}") for name, value in settings.items())
        self._run(
            account, "pg_ctl", "-D", str(self.data), "-l", str(self.log), "-t", f"{self.timeout:.0f}", "-w",
            "-o", options, "start",
        )  # fmt: skip

    @property
    def _sockets(self) -> Path:
        beside = self.home / "run"
        # A DSN and PostgreSQL's own setting take a comma for the end of a path.
        if len(os.fsencode(beside)) <= _SOCKET_DIR_BYTES and "," not in str(beside):
            return beside
        return Path(tempfile.gettempdir()) / f"symfonic-pg-{sha256(os.fsencode(self.home)).hexdigest()[:16]}"

    def _make_sockets(self, account: ServiceAccount | None) -> Path:
        directory = self._sockets
        directory.mkdir(mode=0o700, exist_ok=True)
        owners = {os.geteuid(), account.uid if account else os.geteuid()}
        if directory.is_symlink() or directory.stat().st_uid not in owners:
            raise SymfonicError(f"{directory} belongs to somebody else: it cannot hold the server's socket")
        directory.chmod(0o700)
        if account is not None:
            account.give(directory)
        return directory

    def _postmaster(self) -> Postmaster | None:
        """The server that runs on these data, None when there is none or only the remains of one."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        if len(lines) < 8:
            # Still being written, or cut off by a full disk: only a living process tells which.
            found = Postmaster(int(lines[0]), 0, "", "starting") if lines and lines[0].isdigit() else None
        else:
            found = Postmaster(int(lines[0]), int(lines[3]), lines[4], lines[7].strip())
        return found if found and (_answers(found) or self._is_ours(found.pid)) else None

    def _is_ours(self, pid: int) -> bool:
        import psutil

        try:
            process = psutil.Process(pid)
            return process.status() != psutil.STATUS_ZOMBIE and str(self.data) in process.cmdline()
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True

    def _run(self, account: ServiceAccount | None, program: str, *arguments: str) -> None:
        command = [str(self.binaries / program), *arguments]
        # A file, not a pipe: the server inherits it and would keep a pipe open for as long as it runs.
        with tempfile.TemporaryFile("w+") as output:
            finished = _call(command, output.fileno(), account, self.timeout + 5)
            output.seek(0)
            if finished != 0:
                raise MemoryUnavailable(f"{program} failed: {output.read().strip()}; {self._tail()}")

    def _tail(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        except OSError:
            lines = []
        return f"the end of {self.log}: " + (" | ".join(lines) or "(empty)")


def _call(command: Sequence[str], output: int, account: ServiceAccount | None, timeout: float) -> int:
    # LC_MESSAGES would translate the log; TZ spares initdb a search through every time zone.
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    identity = account.identity() if account else {}
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=timeout, cwd="/",
            env=environment, check=False, **identity,
        ).returncode  # fmt: skip
    except subprocess.TimeoutExpired as exc:
        raise MemoryUnavailable(f"{command[0]} did not finish in {timeout:g} s") from exc


def _answers(postmaster: Postmaster) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(f"{postmaster.socket_dir}/.s.PGSQL.{postmaster.port}")
        except OSError:
            return False
    return True


def _dsn(postmaster: Postmaster) -> str:
    port = "" if postmaster.port == 5432 else f"&port={postmaster.port}"
    return f"postgresql://postgres@/postgres?host={quote(postmaster.socket_dir, safe='')}{port}"
