"""The blocks of docs/django.md, run in the host project."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

import pytest
from django.db import connections
from django.test import RequestFactory
from django.utils.module_loading import import_string

from symfonic_pg.contrib.django import DjangoMemoryStore
from symfonic_pg.contrib.django.asgi import MemoryLifespan
from symfonic_pg.contrib.django.configuration import option_names
from tests.django.conftest import ROOT
from tests.django.host import shop
from tests.django.host.shop import models

TEXT = (ROOT / "docs" / "django.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```py\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the blocks define, one after the other."""
    monkeypatch.setitem(sys.modules, "shop", shop)
    monkeypatch.setitem(sys.modules, "shop.models", models)
    names: dict[str, Any] = {"INSTALLED_APPS": []}
    for block in BLOCKS:
        exec(compile(block, "docs/django.md", "exec"), names)
    return names


async def test_the_blocks_do_what_the_page_says(names: dict[str, Any]) -> None:
    def synchronously() -> None:
        try:
            names["place"]("ana", "desk lamp")
            assert names["prompt"]("ana", "lamp?") == "[episodic] ordered a desk lamp"
            assert names["about"]("ana") == ["ordered a desk lamp"]
        finally:
            connections.close_all()

    await asyncio.to_thread(synchronously)
    answer = await names["prompt_view"](RequestFactory().get("/", {"cue": "lamp"}))
    assert answer.content == b"[episodic] ordered a desk lamp"
    assert isinstance(names["application"], MemoryLifespan)
    assert names["INSTALLED_APPS"] == ["symfonic_pg.contrib.django"]


def test_every_setting_that_the_page_names_exists(names: dict[str, Any], store: DjangoMemoryStore) -> None:
    known = {"DATABASE", "VECTORS", "POOL_MAX", *option_names()}
    named = set(re.findall(r"SYMFONIC_PG_([A-Z_]+)", TEXT))
    assert named <= known
    assert {"DATABASE", "SCHEMA", "VECTORS", "EMBEDDER", "TIMEOUT", "LANGUAGE", "POOL_MAX"} <= named
    assert callable(import_string(names["SYMFONIC_PG_EMBEDDER"]))
