"""The examples do what they say, on the embedded server that they start themselves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from sqlalchemy import text

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_an_example_fits_on_two_pages(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 100


def run_script(folder: Path) -> list[str]:
    command = [sys.executable, "-W", "error", EXAMPLES / "plain_script.py", folder]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return finished.stdout.splitlines()


def test_the_script_recalls_what_it_remembers_and_keeps_it(server_home: Path) -> None:
    first = run_script(server_home)
    assert first[0] == "# 5 new memories, 0 known ones"
    assert first[1:3] == ["[working] ana: My desk lamp gets very hot", "[semantic] Ana prefers short answers"]
    assert "[episodic] Ana bought a desk lamp of batch 7" in first
    assert "[semantic] Lamps of batch 7 are recalled: the driver overheats" in first
    assert "[episodic] The summer party is in the garden" not in first
    assert "# 3 uses counted" in first
    assert any("'party'" in line and "limit 3" in line for line in first)
    assert run_script(server_home)[0] == "# 0 new memories, 5 known ones"


@pytest.fixture
def order_desk(server_home: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("ORDER_DESK", str(server_home))
    spec = spec_from_file_location("order_desk", EXAMPLES / "order_desk.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    # Where pydantic looks for the names of annotations.
    monkeypatch.setitem(sys.modules, "order_desk", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
async def desk(order_desk: ModuleType) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(order_desk.app, raise_app_exceptions=False)
    async with (
        order_desk.app.router.lifespan_context(order_desk.app),
        httpx.AsyncClient(transport=transport, base_url="http://desk") as client,
    ):
        yield client


async def test_the_order_desk_remembers_orders_and_only_those_that_were_placed(
    desk: httpx.AsyncClient, order_desk: ModuleType
) -> None:
    placed = await desk.post("/customers/ana/orders", json={"item": "desk lamp", "pieces": 2})
    assert (placed.status_code, placed.json()) == (201, 1)
    # The order is refused by the database, the memory by its own rules: neither leaves the other behind.
    assert (await desk.post("/customers/ana/orders", json={"item": "lamp", "pieces": 0})).status_code == 500
    refused = await desk.post("/customers/ana/orders", json={"item": "x" * 100_001})
    assert refused.status_code == 422
    async with order_desk.app.state.sessions() as session:
        assert (await session.execute(text("SELECT count(*) FROM orders"))).scalar() == 1

    asked = {"question": "which lamp did I order?"}
    answer = (await desk.get("/customers/ana/prompt", params=asked)).json()
    assert answer == {"prompt": "[episodic] ana ordered 2 x desk lamp", "memories": ["order-1"]}
    assert (await desk.post("/customers/ana/used", json=answer["memories"])).json() == 1
    [memory] = await order_desk.app.state.memory_store.list("org:acme/customer:ana")
    assert memory.access_count == 1

    # Another customer, also one whose name tries to look like a path, sees nothing of it.
    for other in ("eve", "ana:x", "eve%252Fcustomer:ana"):
        assert (await desk.get(f"/customers/{other}/prompt", params=asked)).json()["memories"] == []
    assert (await desk.get("/health/memory")).json() == {"status": "ok"}
