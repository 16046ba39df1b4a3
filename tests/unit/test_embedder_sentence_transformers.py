"""The adapter to sentence-transformers, over stand-ins for the two shapes that the library has had."""

import sys
import threading
import types

import numpy
import pytest

from symfonic_pg.embedders import SentenceTransformerEmbedder, embed_query, embed_texts
from symfonic_pg.memory.errors import MemoryContractError


class Transformer:
    """Before version 5: `encode` alone, prompts chosen by name."""

    def __init__(self, name="none", **options):
        self.name = name
        self.options = options
        self.prompts = options.pop("prompts", {})
        self.calls = []
        self.threads = set()

    def encode(self, sentences, batch_size=32, show_progress_bar=None, convert_to_numpy=True, **prompts):
        assert isinstance(sentences, list)
        assert (show_progress_bar, convert_to_numpy) == (False, True)
        self.calls.append((sentences, prompts))
        self.threads.add(threading.current_thread())
        return numpy.array([[len(text), 1.0, 0.0] for text in sentences], dtype=numpy.float32)


class TransformerWithRoles(Transformer):
    """Since version 5: a method each for queries and documents."""

    def encode_query(self, sentences, **options):
        return self.encode(sentences, **options, role="query")

    def encode_document(self, sentences, **options):
        return self.encode(sentences, **options, role="document")


@pytest.fixture
def library(monkeypatch):
    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = Transformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return module


async def test_a_model_is_loaded_by_name_and_tells_its_own_dimension(library):
    embedder = SentenceTransformerEmbedder("some/model", baseline=0.2, device="cpu")
    assert (embedder.model, embedder.dimension, embedder.baseline) == ("some/model", 3, 0.2)
    assert embedder._transformer.options == {"device": "cpu"}
    assert await embed_texts(embedder, ["a", " ", "ccc"]) == [(1.0, 1.0, 0.0), None, (3.0, 1.0, 0.0)]
    assert await embed_query(embedder, "four") == (4.0, 1.0, 0.0)


async def asked(embedder, transformer):
    transformer.calls.clear()
    await embedder.embed(["p"])
    await embedder.embed_query("q")
    return transformer.calls


async def test_the_roles_of_the_library_are_used_where_it_has_them():
    transformer = TransformerWithRoles()
    embedder = SentenceTransformerEmbedder(transformer, name="m")
    assert await asked(embedder, transformer) == [(["p"], {"role": "document"}), (["q"], {"role": "query"})]


async def test_older_versions_get_the_prompts_of_the_model_by_name():
    transformer = Transformer(prompts={"query": "q: ", "passage": "p: "})
    embedder = SentenceTransformerEmbedder(transformer, name="m")
    assert await asked(embedder, transformer) == [
        (["p"], {"prompt_name": "passage"}),
        (["q"], {"prompt_name": "query"}),
    ]


@pytest.mark.parametrize("kind", [Transformer, TransformerWithRoles])
async def test_prompts_that_were_given_win(kind):
    transformer = kind(prompts={"query": "q: "})
    embedder = SentenceTransformerEmbedder(transformer, name="m", query_prompt="ask: ", passage_prompt="")
    calls = await asked(embedder, transformer)
    assert [prompts["prompt"] for _, prompts in calls] == ["", "ask: "]
    assert not any("prompt_name" in prompts for _, prompts in calls)


async def test_embedding_runs_in_one_thread_that_is_not_the_caller_s():
    transformer = Transformer()
    embedder = SentenceTransformerEmbedder(transformer, name="m", batch_size=1)
    transformer.threads.clear()
    await embedder.embed(["a", "b", "c"])
    await embedder.embed_query("q")
    assert len(transformer.threads) == 1
    assert threading.current_thread() not in transformer.threads


def test_a_loaded_model_needs_a_name():
    with pytest.raises(MemoryContractError, match="name="):
        SentenceTransformerEmbedder(Transformer())


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'symfonic-pg\[sentence-transformers\]'"):
        SentenceTransformerEmbedder("some/model")
