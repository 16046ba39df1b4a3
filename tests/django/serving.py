"""A real ASGI server in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_OPTIONS = ("--lifespan", "on", "--no-access-log", "--timeout-keep-alive", "120")


@contextmanager
def served(
    application: str, folder: Path, environment: Mapping[str, str], stop: signal.Signals = signal.SIGTERM
) -> Iterator[Path]:
    """The socket of a server that runs in `folder`; it has to end in order and without a complaint."""
    python = (sys.executable, "-W", "always::ResourceWarning")
    with tempfile.TemporaryDirectory(prefix="symfonic-pg-asgi-") as place, open(f"{place}/log", "w+") as log:
        at = Path(place) / "http"
        server = subprocess.Popen(
            [*python, "-m", "uvicorn", "--uds", str(at), *_OPTIONS, application],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            deadline = time.monotonic() + 30
            while not at.exists() and server.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            yield at
            server.send_signal(stop)
            assert server.wait(30) in (0, -stop, 128 + stop)
        finally:
            server.kill()
            server.wait()
            log.seek(0)
            said = log.read()
        assert "Finished server process" in said, said
        assert "Warning" not in said, said
        assert "Traceback" not in said, said
