"""The terms of a text: what lexical search counts, the same for whoever writes and whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from hashlib import sha256

from symfonic_pg.memory.relevance import words
from symfonic_pg.terms.languages import LANGUAGES, SIMPLE, check_language, stemmer, stop_words

__all__ = ["LANGUAGES", "MAX_TERM_BYTES", "check_language", "term_counts", "terms"]

# A longer term would not fit a B-tree row next to its tenant and scope.
MAX_TERM_BYTES = 200


def terms(text: str, language: str) -> list[str]:
    """The terms of a text in text order, with repeats: their number is the text's length.

    `simple` is words() alone; any other language leaves out its stop words and stems the rest by Snowball.
    A term of more than MAX_TERM_BYTES in UTF-8 is replaced by its sha256 in hex. Raises MemoryContractError
    for a language outside LANGUAGES, ModuleNotFoundError where the stemmer is not installed.
    """
    check_language(language)
    cut: Callable[[str], str | None] = str if language == SIMPLE else partial(_term, language)
    found = words(text)
    # Hardly any text has a word that may be too long, so that the rest need not be looked at one by one.
    if 4 * max(map(len, found), default=0) > MAX_TERM_BYTES:
        cuts: Iterable[str | None] = (_digest(word) if _too_long(word) else cut(word) for word in found)
    else:
        cuts = map(cut, found)
    return [term for term in cuts if term is not None]


def term_counts(text: str, language: str) -> dict[str, int]:
    """How often each term occurs in the text, in order of first occurrence; see `terms`."""
    counts: dict[str, int] = {}
    for term in terms(text, language):
        counts[term] = counts.get(term, 0) + 1
    return counts


# Texts repeat a small vocabulary: 65,536 words of it cost a few megabytes and spare the stemmer, which
# takes some 50 microseconds a word. Long words never come here, so no text can make the cache big.
@lru_cache(maxsize=65_536)
def _term(language: str, word: str) -> str | None:
    """The term a word stands for, or None for a stop word."""
    if word in stop_words(language):
        return None
    stem = stemmer(language)(word)
    return _digest(stem) if _too_long(stem) else stem


def _too_long(word: str) -> bool:
    # No code point takes more than four bytes, so most words are settled by their length alone.
    return 4 * len(word) > MAX_TERM_BYTES and len(word.encode()) > MAX_TERM_BYTES


def _digest(word: str) -> str:
    return sha256(word.encode()).hexdigest()
