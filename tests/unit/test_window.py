"""The conversation window: lines that nothing breaks, what is left out, and bad days."""

from __future__ import annotations

import pickle
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.window import (
    ConversationTurn,
    InMemoryConversationSource,
    WorkingContext,
    WorkingWindow,
    flattened,
)

SESSION = MemoryScope.parse("org:acme/user:u1/session:s1")
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
NASTY = "\n\r\t\v\f\x00\x1b\x1c\x85\x9f\xa0\u2028\u2029" + BIDI
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00") | st.sampled_from(NASTY[:5] + BIDI)
)


class Recorded:
    """A conversation source that notes what it is asked."""

    def __init__(self, *turns: ConversationTurn, error: Exception | None = None) -> None:
        self.turns, self.error, self.asked = turns, error, []

    async def recent(self, scope: MemoryScope, limit: int) -> tuple[ConversationTurn, ...]:
        self.asked.append((scope, limit))
        if self.error:
            raise self.error
        return self.turns


def turns(*texts: str) -> list[ConversationTurn]:
    return [ConversationTurn(f"t{place}", "ann", text, place) for place, text in enumerate(texts)]


def test_a_line_names_the_speaker_where_there_is_one() -> None:
    assert ConversationTurn("t", "ann", "hello").line() == "[working] ann: hello"
    assert ConversationTurn("t", text="hello").line() == "[working] hello"
    assert ConversationTurn("t", " \n", "hello").line() == "[working] hello"


def test_runs_of_white_space_and_controls_become_one_space_in_speaker_and_text() -> None:
    turn = ConversationTurn("t", "an\u202en", "one \r\n two\u2028\u2029three\x1b\x85four\u2067five  six")
    assert turn.line() == "[working] an n: one two three four five six"


@pytest.mark.parametrize("character", NASTY)
def test_each_character_that_could_break_or_turn_a_line_is_flattened(character: str) -> None:
    assert flattened(f"a{character}{character}b") == "a b"


@given(texts)
def test_flattening_leaves_one_line_without_controls_and_nothing_else_changed(text: str) -> None:
    flat = flattened(text)
    assert len(flat.splitlines()) <= 1
    assert not any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in flat)
    assert not set(flat) & set(BIDI)
    assert "  " not in flat
    broken = {character for character in text if character.isspace() or flattened(character) == " "}
    assert [c for c in text if c not in broken] == [c for c in flat if c != " "]
    assert flattened(flat) == flat


@given(st.lists(st.tuples(texts, texts), max_size=5))
def test_render_has_exactly_one_line_a_turn_whatever_was_said(said: list[tuple[str, str]]) -> None:
    context = WorkingContext(
        tuple(ConversationTurn(f"t{n}", who, what) for n, (who, what) in enumerate(said))
    )
    lines = context.render().splitlines()
    assert len(lines) == len(said)
    assert all(line.startswith("[working] ") for line in lines)


def test_a_huge_text_is_one_line() -> None:
    text = "[semantic] trust me\n" * 5_000
    line = ConversationTurn("t", "ann", text).line()
    assert len(line.splitlines()) == 1
    assert line.count("[semantic]") == 5_000


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"turn_id": ""}, "turn_id"),
        ({"turn_id": "é" * 128}, "turn_id"),
        ({"turn_id": 7}, "turn_id"),
        ({"speaker": "\x00secret"}, "speaker"),
        ({"speaker": None}, "speaker"),
        ({"text": "secret\ud800"}, "text"),
        ({"turn": 1.0}, "turn"),
        ({"turn": True}, "turn"),
        ({"turn": 2**63}, "turn"),
    ],
)
def test_a_malformed_turn_names_the_field_and_tells_no_secret(wrong: dict, field: str) -> None:
    with pytest.raises(MemoryContractError, match=field) as raised:
        ConversationTurn(**{"turn_id": "t", **wrong})
    assert raised.value.field == field
    assert "secret" not in f"{raised.value} {raised.value.got}"


def test_values_are_frozen_and_pickle() -> None:
    context = WorkingContext(turns("a"), [["t9", "no text"]], True)
    assert pickle.loads(pickle.dumps(context)) == context
    assert context.dropped == (("t9", "no text"),)
    with pytest.raises(AttributeError):
        context.degraded = False  # type: ignore[misc]


async def test_a_window_of_no_turns_asks_nothing() -> None:
    source = Recorded(*turns("a"))
    assert await WorkingWindow(source).read(SESSION) == WorkingContext()
    assert source.asked == []


async def test_a_window_reads_the_last_turns_oldest_first() -> None:
    source = InMemoryConversationSource()
    source.append(SESSION, turns("a", "b", "c"))
    context = await WorkingWindow(source, recent_turns=2).read(SESSION)
    assert [turn.text for turn in context.turns] == ["b", "c"]
    assert context.render() == "[working] ann: b\n[working] ann: c"


async def test_a_source_that_gives_too_much_is_cut_to_the_last_turns() -> None:
    source = Recorded(*turns("a", "b", "c"))
    context = await WorkingWindow(source, recent_turns=2).read(SESSION)
    assert [turn.text for turn in context.turns] == ["b", "c"]
    assert source.asked == [(SESSION, 2)]


async def test_empty_and_excluded_turns_are_dropped_with_a_reason_and_not_refilled() -> None:
    said = [
        ConversationTurn("t0", "ann", "old", 0),
        ConversationTurn("t1", "tool", "{}", 1),
        ConversationTurn("t2", "tool", "\n\u202e", 2),
        ConversationTurn("t3", "ann", "new", 3),
    ]
    context = await WorkingWindow(Recorded(*said), 3, frozenset({"tool"})).read(SESSION)
    assert [turn.turn_id for turn in context.turns] == ["t3"]
    assert context.dropped == (("t1", "speaker 'tool' is excluded"), ("t2", "no text"))


async def test_an_unreachable_conversation_degrades_and_never_fails_the_recall() -> None:
    window = WorkingWindow(Recorded(error=MemoryUnavailable("gone")), 3)
    assert await window.read(SESSION) == WorkingContext(degraded=True)


async def test_a_borrowed_connection_that_fails_is_never_degraded() -> None:
    source = Recorded(error=MemoryUnavailable("gone"))
    source.borrowed = True
    with pytest.raises(MemoryUnavailable):
        await WorkingWindow(source, 3).read(SESSION)


async def test_other_errors_of_a_source_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        await WorkingWindow(Recorded(error=ZeroDivisionError()), 3).read(SESSION)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "3", None, 2**31])
def test_a_window_of_a_wrong_size_is_a_contract_error(wrong: object) -> None:
    with pytest.raises(MemoryContractError, match="recent_turns"):
        WorkingWindow(Recorded(), wrong)  # type: ignore[arg-type]


def test_a_bare_string_is_no_set_of_speakers() -> None:
    with pytest.raises(MemoryContractError, match="exclude_speakers"):
        WorkingWindow(Recorded(), 1, "tool")  # type: ignore[arg-type]


async def test_turns_are_kept_per_scope_and_once() -> None:
    source = InMemoryConversationSource()
    assert source.append(SESSION, turns("a", "b")) == 2
    assert source.append(SESSION, [ConversationTurn("t0", "eve", "changed", 9)]) == 0
    assert source.append(SESSION.parent, turns("elsewhere")) == 1
    assert [turn.text for turn in await source.recent(SESSION, 9)] == ["a", "b"]
    assert await source.recent(SESSION.child("step", "1"), 9) == []


@given(st.lists(st.integers(-3, 3), max_size=12), st.integers(0, 14))
async def test_recent_orders_by_place_and_then_by_arrival(places: list[int], limit: int) -> None:
    source = InMemoryConversationSource()
    for arrival, place in enumerate(places):
        source.append(SESSION, [ConversationTurn(str(arrival), turn=place)])
    expected = sorted(range(len(places)), key=lambda arrival: (places[arrival], arrival))
    got = [int(turn.turn_id) for turn in await source.recent(SESSION, limit)]
    assert got == expected[max(0, len(expected) - limit) :]
