"""Terms: one function for writer and reader, stop words out and stemmed, whatever comes in."""

from __future__ import annotations

import builtins
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.relevance import words
from symfonic_pg.terms import LANGUAGES, MAX_TERM_BYTES, check_language, term_counts, terms
from symfonic_pg.terms import languages as languages_module
from symfonic_pg.terms.languages import STEMMED, stemmer, stop_words

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=200)


def test_english_leaves_out_stop_words_and_stems_the_rest() -> None:
    assert terms("The customers were asking for refunds, and a refund is a refund.", "english") == [
        "custom", "ask", "refund", "refund", "refund",
    ]  # fmt: skip


def test_simple_is_words_alone() -> None:
    text = "The Customers' REFUNDS — the ﬁnal ones: 返金ポリシー"
    assert terms(text, "simple") == words(text)


def test_terms_keep_text_order_and_repeats() -> None:
    assert terms("beta alpha beta", "simple") == ["beta", "alpha", "beta"]
    assert list(term_counts("beta alpha beta", "simple").items()) == [("beta", 2), ("alpha", 1)]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("german", "Die Häuser und das Haus", ["haus", "haus"]),
        ("french", "L'entreprise et la entreprises", ["entrepris", "entrepris"]),
        ("spanish", "las políticas de la política", ["polit", "polit"]),
        ("russian", "и возвраты возврата", ["возврат", "возврат"]),
        ("italian", "i rimborsi e il rimborso", ["rimbors", "rimbors"]),
        ("turkish", "ve evler", ["ev"]),
        ("swedish", "och bilarna", ["bil"]),
    ],
)
def test_other_languages_have_their_own_stop_words_and_stems(
    language: str, text: str, expected: list[str]
) -> None:
    assert terms(text, language) == expected


def test_a_foreign_text_passes_through_a_configuration_the_same_way_on_both_sides() -> None:
    text = "Возврат средств занимает 5 дней, 返金は五日"
    assert set(terms("возврат", "english")) < set(terms(text, "english"))


def test_stop_words_apply_to_the_casefolded_word() -> None:
    assert terms("THE The tHe DAẞ", "english") == ["dass"]
    # The list has "daß", which casefolds to "dass" on both sides.
    assert terms("DAẞ daß dass", "german") == []


def test_a_language_without_a_list_stems_only() -> None:
    assert stop_words("romanian") == frozenset()
    assert terms("și casele", "romanian") == ["și", "cas"]


def test_the_shipped_lists_are_exactly_the_fifteen_of_postgresql() -> None:
    shipped = files("symfonic_pg.terms").joinpath("stop_words")
    names = {entry.name.removesuffix(".stop") for entry in shipped.iterdir() if entry.name.endswith(".stop")}
    assert names == {language for language in STEMMED if stop_words(language)}
    assert len(names) == 15
    assert len(stop_words("english")) == 127
    assert shipped.joinpath("COPYRIGHT").is_file()


def test_a_long_term_becomes_a_digest_of_fixed_length_in_every_language() -> None:
    for language in ("simple", "english"):
        for word in ("x" * (MAX_TERM_BYTES + 1), "ж" * (MAX_TERM_BYTES // 2 + 1), "walking" * 10_000):
            (term,) = terms(word, language)
            assert len(term) == 64
            assert terms(word.upper(), language) == [term]
        assert terms("x" * MAX_TERM_BYTES, language) == ["x" * MAX_TERM_BYTES]
    assert terms("x" * 201, "simple") != terms("x" * 202, "simple")


@given(TEXTS, st.sampled_from(sorted(LANGUAGES)))
def test_no_text_breaks_any_language(text: str, language: str) -> None:
    found = terms(text, language)
    assert len(found) <= len(words(text))
    assert all(0 < len(term.encode()) <= MAX_TERM_BYTES for term in found)
    assert sum(term_counts(text, language).values()) == len(found)
    assert list(term_counts(text, language)) == list(dict.fromkeys(found))


@given(st.lists(TEXTS, max_size=4))
def test_the_terms_of_joined_texts_are_those_of_each(texts: list[str]) -> None:
    joined = terms(" ".join(texts), "english")
    assert joined == [term for text in texts for term in terms(text, "english")]


@pytest.mark.parametrize(
    "language", ["English", "klingon", "", " english", None, 3, "pg_catalog.english", ["english"]]
)
def test_an_unknown_language_is_a_contract_error_that_names_those_known(language: object) -> None:
    with pytest.raises(MemoryContractError, match=r"english, .*simple, .*yiddish") as caught:
        terms("text", language)  # type: ignore[arg-type]
    assert caught.value.field == "language"


def test_a_known_language_is_returned() -> None:
    assert check_language("simple") == "simple"


def test_every_language_has_its_stemmer() -> None:
    for language in STEMMED:
        assert stemmer(language)("abc")


def test_a_missing_stemmer_is_reported_with_the_extras_that_bring_it() -> None:
    code = (
        "import sys; sys.modules['snowballstemmer'] = None\n"
        "from symfonic_pg.terms import terms\n"
        "print(terms('The refunds', 'simple'))\n"
        "try: terms('The refunds', 'english')\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("['the', 'refunds']\n")
    assert "symfonic-pg[asyncpg]" in done.stdout


def test_a_compiled_stemmer_of_another_version_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    real = builtins.__import__

    def watching(name: str, *args: object, **kwargs: object) -> object:
        imported.append(name)
        return real(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", watching)
    languages_module.stemmer.__wrapped__("danish")
    assert "snowballstemmer" not in imported


def test_several_threads_get_the_same_stems() -> None:
    texts = [
        " ".join(f"{stem}{number}ing" for number in range(200)) for stem in ("walk", "talk", "ask", "jump")
    ]
    alone = [[stemmer("english")(word) for word in words(text)] for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: terms(text, "english"), texts))
    assert together == alone


def test_a_text_of_100_kb_takes_a_moment() -> None:
    text = " ".join(f"customer{number % 3000}ing" for number in range(6000))[:100_000]
    started = perf_counter()
    first = terms(text, "english")
    warm = perf_counter()
    assert terms(text, "english") == first
    assert warm - started < 5.0
    assert perf_counter() - warm < 1.0
