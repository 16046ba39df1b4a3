"""memory_embed as a process that a process manager starts and stops."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

from symfonic_pg import MemoryRecord
from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.sync import MemoryStore
from tests.django.conftest import ROOT, Project


def test_it_follows_what_is_written_until_it_is_terminated(
    project: Callable[..., Project], database: str
) -> None:
    host = project(database, SYMFONIC_PG_EMBEDDER="symfonic_pg.embedders.HashingEmbedder")
    command = [sys.executable, "-W", "error", "-m", "django", "memory_embed", "--watch"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        with (
            MemoryStore.connect(database) as writer,
            MemoryStore.connect(database, embedder=HashingEmbedder()) as reader,
        ):
            for turn in range(2):
                writer.remember(MemoryRecord(f"m{turn}", "org:acme", "semantic", f"note {turn}"))
                deadline = time.monotonic() + 40
                while reader.count_pending().waiting and time.monotonic() < deadline:
                    time.sleep(0.1)
                assert reader.count_pending().waiting == 0
        process.send_signal(signal.SIGTERM)
        printed, complaints = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, complaints
    assert set(printed.splitlines()) == {"1 embedded"}
    assert complaints == ""
