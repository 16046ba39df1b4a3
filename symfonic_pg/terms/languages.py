"""The languages a text can be cut into terms in, with their stop words and their stemmers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.resources import files

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.relevance import words

SIMPLE = "simple"

# The names of PostgreSQL 18's text search configurations; all but `simple` have a Snowball stemmer.
STEMMED = frozenset(
    {
        "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "estonian", "finnish",
        "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian",
        "nepali", "norwegian", "portuguese", "romanian", "russian", "serbian", "spanish", "swedish", "tamil",
        "turkish", "yiddish",
    }
)  # fmt: skip

LANGUAGES = STEMMED | {SIMPLE}


def check_language(language: object, *, field: str = "language") -> str:
    """The language, if it is one of LANGUAGES.

    Raises MemoryContractError naming those known; the name itself is configuration, so it is quoted.
    """
    if isinstance(language, str) and language in LANGUAGES:
        return language
    known = ", ".join(sorted(LANGUAGES))
    raise MemoryContractError(
        f"{field} must be one of {known}; got {language!r}",
        field=field,
        rule="a known text search configuration",
        got=language,
    )


@cache
def stop_words(language: str) -> frozenset[str]:
    """The language's stop words as `words` would cut them; empty for a language without a list."""
    source = files(__package__).joinpath("stop_words", f"{language}.stop")
    if not source.is_file():
        return frozenset()
    cut = (words(line) for line in source.read_text(encoding="utf-8").splitlines())
    return frozenset(word[0] for word in cut if len(word) == 1)


@cache
def stemmer(language: str) -> Callable[[str], str]:
    """A function from a casefolded word to its stem, safe to call from several threads.

    The classes are named one by one because `snowballstemmer.stemmer()` hands out PyStemmer's compiled
    algorithms where that happens to be installed: another version, other stems, and a writer and a reader
    that no longer agree.
    """
    try:
        module = import_module(f"snowballstemmer.{language}_stemmer")
    except ImportError as exc:
        raise ModuleNotFoundError(
            f"the terms of a text in {language!r} need snowballstemmer 3.0 or newer, which comes with "
            "symfonic-pg[asyncpg], symfonic-pg[psycopg] and symfonic-pg[sqlalchemy]; "
            "language='simple' needs nothing",
            name="snowballstemmer",
        ) from exc
    algorithm = getattr(module, f"{language.capitalize()}Stemmer")

    def stem(word: str) -> str:
        # A stemmer keeps its word as state; a new one costs less than a lock.
        stemmed: str = algorithm().stemWord(word)
        return stemmed or word

    return stem
