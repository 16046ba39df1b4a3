"""A host project in processes of its own: Django's settings are those of a whole process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

# Run by test_inside.py, in a process in which Django is set up.
collect_ignore = [] if "HOST_DATABASES" in os.environ else ["inside"]


@dataclass
class Project:
    """The project in tests/django/host with these databases and settings."""

    databases: dict[str, str]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What its processes need to know."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "tests.django.host.settings",
            "HOST_DATABASES": json.dumps(self.databases),
            "HOST_SETTINGS": json.dumps(self.settings),
        }

    def python(self, *arguments: str, fails: bool = False) -> str:
        """Run Python, with warnings as errors; gives what it printed."""
        finished = subprocess.run(
            [sys.executable, "-W", "error", *arguments],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False, timeout=280,
        )  # fmt: skip
        printed = finished.stdout + finished.stderr
        assert (finished.returncode != 0) == fails, printed
        return printed

    def manage(self, *arguments: str, fails: bool = False) -> str:
        """Run a command of manage.py."""
        return self.python("-m", "django", *arguments, fails=fails)


@pytest.fixture
def project() -> Callable[..., Project]:
    """Makes a project on one or several databases."""

    def make(default: str, *, also: dict[str, str] | None = None, **settings: Any) -> Project:
        return Project({"default": default, **(also or {})}, settings)

    return make
