"""The plugin runs the contract in somebody else's test session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from symfonic_pg.testing import CONTRACT

TESTS = """
import asyncio
import pytest
from symfonic_pg.testing import InMemoryRepository

class Forgetful(InMemoryRepository):
    async def count(self, scope):
        return 0

def test_contract(behaviour, in_memory_repository):
    asyncio.run(behaviour(in_memory_repository))

def test_broken(behaviour):
    asyncio.run(behaviour(Forgetful()))
"""


def test_a_test_that_takes_behaviour_runs_with_the_whole_contract(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TESTS)
    chosen = "forget_deletes or separators_inside or every_field or a_batch_of_a_thousand"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "symfonic_pg.testing.plugin", "-k", chosen]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [*command, "--color=no", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert "1 failed, 7 passed" in done.stdout, done.stdout + done.stderr
    assert f"{2 * len(CONTRACT) - 8} deselected" in done.stdout
    # Assertions of the contract show their values.
    assert "assert 0 == 1000" in done.stdout


def test_the_names_of_the_behaviours_are_unique_and_readable() -> None:
    names = [behaviour.name for behaviour in CONTRACT]
    assert len(set(names)) == len(names) > 100
    assert all(name.islower() and name.count("_") >= 2 for name in names)
    assert any(behaviour.needs_another for behaviour in CONTRACT)
