"""The example project does what it says, on the embedded server that it starts itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.django.conftest import ROOT
from tests.django.serving import served

EXAMPLE = ROOT / "examples" / "django_project"


@pytest.fixture
def environment(server_home: Path) -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "PYTEST"))
    }
    return {**inherited, "HELP_DESK": str(server_home), "PYTHONPATH": f"{EXAMPLE}{os.pathsep}{ROOT}"}


def manage(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "manage.py", *arguments]
    finished = subprocess.run(
        command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def test_it_fits_on_two_pages() -> None:
    assert sum(len(path.read_text("utf-8").splitlines()) for path in EXAMPLE.rglob("*.py")) < 100


def test_an_order_is_remembered_for_its_customer_alone(environment: dict[str, str]) -> None:
    manage(environment, "migrate")
    manage(environment, "makemigrations", "--check")
    with served("desk.asgi:application", EXAMPLE, environment, signal.SIGINT) as at:
        transport = httpx.HTTPTransport(uds=str(at))
        with httpx.Client(transport=transport, base_url="http://desk", timeout=30) as client:
            assert client.post("/ana/orders", data={"item": "a desk lamp"}).json() == {"order": 1}
            asked = {"cue": "which lamp?"}
            assert client.get("/ana/prompt", params=asked).text == "[episodic] ordered: a desk lamp"
            assert client.get("/eve/prompt", params=asked).text == ""
    assert "ok " in manage(environment, "memory_doctor")
