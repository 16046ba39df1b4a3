"""The two numbers of a cue: the cosine of the vectors and lex of the terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log, sqrt

from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.vectors import cosine, half, unit
from symfonic_pg.testing.contract.base import (
    NOW,
    ContractRepository,
    ask,
    behaviour,
    fresh,
    near,
    note,
    search,
    tenant,
)

# What rounding both vectors to half precision may cost a cosine.
HALF = 1e-3


def lex(asked: Sequence[str], text: Sequence[str], texts: Sequence[Sequence[str]]) -> float:
    """lex as its definition says, of terms written out by hand."""
    mean = sum(map(len, texts)) / len(texts)
    idf = {
        term: log(1 + (len(texts) - n + 0.5) / (n + 0.5))
        for term in asked
        for n in [sum(term in other for other in texts)]
    }
    counts = Counter(text)
    found = [
        weight * counts[term] / (counts[term] + 0.6 * (0.25 + 0.75 * len(text) / mean))
        for term, weight in idf.items()
    ]
    return sum(found) / sum(idf.values())


@behaviour
async def cosines_are_those_of_the_vectors_whatever_their_length(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 3)
    vectors = {
        "same": [3.0, 4.0, 0.0],
        "tiny": [3e-9, 4e-9, 0.0],
        "huge": [3e300, 4e300, 0.0],
        "large": [70_000.0, 0.0, 0.0],
        "faint": [1.0, 1e-12, 0.0],
        "opposite": [-3.0, -4.0, 0.0],
        "across": [0.0, 0.0, 1.0],
        "slanted": [1.0, 2.0, 2.0],
    }
    expected = {
        "same": 1.0, "tiny": 1.0, "huge": 1.0, "large": 0.6, "faint": 0.6, "opposite": -1.0, "across": 0.0,
        "slanted": 11 / 15,
    }  # fmt: skip
    await repository.remember([note(org, name) for name in vectors], vectors.values(), model=model)
    for scale in (1.0, 1e-9, 1e30):
        query = ask(org, embedding=[0.6 * scale, 0.8 * scale, 0.0])
        seen = await search(repository, query, model=model)
        assert seen.by("vector") == set(vectors)
        for name, value in expected.items():
            assert near(seen[name].cosine, value, within=HALF), (name, seen[name].cosine)
            stored = half(unit(vectors[name]))
            assert near(seen[name].cosine, cosine(stored, half(unit((0.6, 0.8, 0.0)))))
            assert seen[name].lex is None


@behaviour
async def models_of_different_dimension_live_side_by_side(repository: ContractRepository) -> None:
    org = tenant()
    small, large = fresh("small"), fresh("large")
    await repository.register_model(small, 2)
    await repository.register_model(large, 1024)
    wide = [1.0] * 1024
    await repository.remember([note(org, "a"), note(org, "b")], [[1.0, 0.0], [0.0, 1.0]], model=small)
    await repository.remember([note(org, "b"), note(org, "c")], [wide, wide], model=large)
    seen = await search(repository, ask(org, embedding=[1.0, 0.0]), model=small)
    assert seen.by("vector") == {"a", "b"}
    assert seen["c"].cosine is None
    seen = await search(repository, ask(org, embedding=wide), model=large)
    assert seen.by("vector") == {"b", "c"}
    assert near(seen["c"].cosine, 1.0)


@behaviour
async def a_vector_is_found_at_every_level_of_the_lineage(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    model = fresh("mini")
    await repository.register_model(model, 2)
    scopes = [org, user, org.child("user", "v")]
    await repository.remember(
        [note(scope, str(scope)[-4:]) for scope in scopes], [[1.0, 0.0]] * 3, model=model
    )
    seen = await search(repository, ask(user.child("session", "s"), embedding=[1.0, 0.0]), model=model)
    assert len(seen.by("vector")) == 2


@behaviour
async def lex_is_what_its_definition_says(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    texts = {
        "a": "refund policy of the shop",
        "b": "policy policy policy",
        "c": "a day at the sea without any word of it",
        "d": "Refund, REFUND! refund?",
    }
    await repository.remember(
        note(org if name in "ab" else user, name, text, language="simple") for name, text in texts.items()
    )
    cut = {
        "a": ["refund", "policy", "of", "the", "shop"],
        "b": ["policy"] * 3,
        "c": ["a", "day", "at", "the", "sea", "without", "any", "word", "of", "it"],
        "d": ["refund"] * 3,
    }
    for cue, asked in (
        ("refund policy", ["refund", "policy"]),
        ("policy, policy, POLICY", ["policy"]),
        ("the refund of unicorns", ["the", "refund", "of", "unicorns"]),
        ("unicorns", ["unicorns"]),
    ):
        seen = await search(repository, ask(user, cue))
        for name in texts:
            expected = lex(asked, cut[name], list(cut.values()))
            assert near(seen[name].lex, expected), (cue, name, seen[name].lex, expected)
            assert ("lexical" in seen[name].routes) == (expected > 0)
    here = await search(repository, ask(org, "refund policy"))
    assert near(here["a"].lex, lex(["refund", "policy"], cut["a"], [cut["a"], cut["b"]]))


@behaviour
async def english_leaves_out_stop_words_and_stems(repository: ContractRepository) -> None:
    org = tenant()
    texts = {"a": "The customers were asking for refunds", "b": "A walk in the park", "c": "Customer asks"}
    await repository.remember(note(org, name, text, language="english") for name, text in texts.items())
    cut = {"a": ["custom", "ask", "refund"], "b": ["walk", "park"], "c": ["custom", "ask"]}
    seen = await search(repository, ask(org, "What is the refund that a customer asked for?"))
    for name in texts:
        expected = lex(["refund", "custom", "ask"], cut[name], list(cut.values()))
        assert near(seen[name].lex, expected), (name, seen[name].lex, expected)


@behaviour
async def each_record_is_matched_in_its_own_language(repository: ContractRepository) -> None:
    org = tenant()
    texts = {
        "de": ("german", "Die Häuser am See", ["haus", "see"]),
        "en": ("english", "The Häuser of the Seine", ["häuser", "sein"]),
        "plain": ("simple", "die häuser", ["die", "häuser"]),
        "ru": ("russian", "возврат и возвраты", ["возврат", "возврат"]),
    }
    await repository.remember(
        note(org, name, text, language=language) for name, (language, text, _) in texts.items()
    )
    asked = {"de": ["haus"], "en": ["die", "häuser"], "plain": ["die", "häuser"], "ru": ["die", "häuser"]}
    corpus = [cut for _, _, cut in texts.values()]
    seen = await search(repository, ask(org, "die Häuser"))
    for name, (_, _, cut) in texts.items():
        assert near(seen[name].lex, lex(asked[name], cut, corpus)), (name, seen[name].lex)
    seen = await search(repository, ask(org, "возврата"))
    assert seen.by("lexical") == {"ru"}


@behaviour
async def a_cue_of_stop_words_has_no_lex_where_they_are_left_out(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "en", "the refund", language="english")])
    seen = await search(repository, ask(org, "of the"))
    assert seen["en"].lex is None
    assert "lexical" not in seen.observations.routes
    await repository.remember([note(org, "plain", "the refund", language="simple")])
    seen = await search(repository, ask(org, "of the"))
    assert seen.by("lexical") == {"plain"}
    assert seen["en"].lex is None, "its language cuts no term from this cue"
    assert seen["plain"].lex is not None


@behaviour
async def a_text_without_a_term_matches_nothing(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "m", "… !!! ☕"), note(org, "n", "of the and", language="english")])
    seen = await search(repository, ask(org, "refund"))
    assert seen["m"].lex == seen["n"].lex == 0.0
    assert seen.by("lexical") == set()


@behaviour
async def the_statistics_are_of_the_lineage_every_layer_valid_or_not(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    cut = {
        "a": ["refund", "polici"],
        "b": ["refund"],
        "expired": ["refund", "refund", "refund"],
        "episodic": ["polici", "x", "y", "z"],
        "filtered": ["tea"],
    }
    await repository.remember(
        [
            note(org, "a", "refund policy"),
            note(user, "b", "refund", metadata={"n": 1}),
            note(org, "expired", "refund refund refund", expires_at=NOW),
            note(user, "episodic", "policy x y z", layer=MemoryLayer.EPISODIC),
            note(org, "filtered", "tea", metadata={"n": 2}),
            note(org.child("user", "v"), "sibling", "refund policy"),
            note(user.child("session", "s"), "below", "refund policy"),
        ]
    )
    query = ask(user, "refund policy", where={"n": 1})
    seen = await search(repository, query, [MemoryLayer.SEMANTIC])
    assert seen.ids == {"b"}
    expected = lex(["refund", "polici"], cut["b"], list(cut.values()))
    assert near(seen["b"].lex, expected)


@behaviour
async def scripts_without_spaces_are_searched_in_pairs(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember(
        [
            note(org, "ja", "返金ポリシーは三十日です"),
            note(org, "th", "นโยบายการคืนเงิน"),
            note(org, "zh", "退款政策"),
            note(org, "ko", "환불 정책"),
        ]
    )
    for cue, expected in (("返金", "ja"), ("คืนเงิน", "th"), ("政策", "zh"), ("환불", "ko")):
        assert (await search(repository, ask(org, cue))).by("lexical") == {expected}, cue


@behaviour
async def forms_of_one_character_are_one_term(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "m", "ｃａｆé STRASSE ﬁnal", language="simple")])
    for cue in ("CAFE\u0301", "straße", "final", "Café"):
        assert (await search(repository, ask(org, cue))).by("lexical") == {"m"}, cue
    assert (await search(repository, ask(org, "cafe"))).by("lexical") == set()


@behaviour
async def a_unit_vector_is_compared_at_full_width(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("wide")
    await repository.register_model(model, 384)
    rising = [float(number) for number in range(1, 385)]
    falling = list(reversed(rising))
    await repository.remember([note(org, "r"), note(org, "f")], [rising, falling], model=model)
    seen = await search(repository, ask(org, embedding=rising), model=model)
    product = sum(a * b for a, b in zip(rising, falling, strict=True))
    expected = product / sqrt(sum(a * a for a in rising)) / sqrt(sum(b * b for b in falling))
    assert near(seen["r"].cosine, 1.0, within=HALF)
    assert near(seen["f"].cosine, expected, within=HALF)
