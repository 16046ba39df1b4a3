"""Scopes: the text form, what is visible from where, and what no scope can be."""

from __future__ import annotations

import pickle
from enum import StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.scope import MemoryScope, ScopeLevel

quick = settings(deadline=None, max_examples=200)

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=15)
names = names.filter(lambda text: text.strip() and len(text.encode()) <= 63)
awkward = st.sampled_from(["/", ":", "%", "a/b", "a:b", "%2F", "%%", "x\n", "é", "e\u0301", "\x7fa", "\x85a"])
levels = st.lists(st.tuples(st.one_of(names, awkward), st.one_of(names, awkward)), min_size=1, max_size=16)
scopes = levels.map(lambda pairs: MemoryScope.of(*pairs))

few = st.sampled_from(
    [("org", "acme"), ("org", "acme-corp"), ("user", "u1"), ("user", "u"), ("a", "/"), ("a", "%2F")]
)
near = st.lists(few, min_size=1, max_size=4).map(lambda pairs: MemoryScope.of(*pairs))


def test_a_scope_is_built_from_pairs_levels_children_or_text():
    built = MemoryScope.of(("org", "acme"), ("user", "u1"))
    assert built == MemoryScope.parse("org:acme/user:u1")
    assert built == MemoryScope.of(("org", "acme")).child("user", "u1")
    assert built == MemoryScope((ScopeLevel("org", "acme"), ScopeLevel("user", "u1")))
    assert built.levels == (ScopeLevel("org", "acme"), ScopeLevel("user", "u1"))
    assert str(built) == "org:acme/user:u1"


def test_a_scope_knows_its_way_up():
    scope = MemoryScope.parse("org:acme/user:u1/session:s1")
    user, org = MemoryScope.parse("org:acme/user:u1"), MemoryScope.parse("org:acme")
    assert scope.depth == 3
    assert scope.parent == user
    assert scope.root == org
    assert org.root == org
    assert org.parent is None
    assert org.depth == 1
    assert scope.ancestors() == (user, org)
    assert org.ancestors() == ()
    assert (scope.kind, scope.id) == ("session", "s1")
    assert scope.tenant == "org:acme" == str(scope.root)


def test_tenants_differ_by_kind_as_well():
    assert MemoryScope.parse("org:acme").tenant != MemoryScope.parse("brand:acme").tenant


@pytest.mark.parametrize(
    ("query", "memory", "distance"),
    [
        ("org:acme/user:u1/session:s1", "org:acme/user:u1/session:s1", 0),
        ("org:acme/user:u1/session:s1", "org:acme/user:u1", 1),
        ("org:acme/user:u1/session:s1", "org:acme", 2),
        ("org:acme", "org:acme/user:u1", -1),
        ("org:acme/user:u1", "org:acme/user:u2", -1),
        ("org:acme/user:u1", "org:acme/user:u", -1),
        ("org:acme-corp", "org:acme", -1),
        ("org:acme", "org:acme-corp", -1),
        ("org:acme/user:u1", "brand:acme", -1),
        ("org:acme/user:u1", "org:ACME", -1),
        ("org:a%2Fuser%3Au1", "org:a", -1),
    ],
)
def test_a_query_sees_its_own_level_and_its_ancestors_alone(query, memory, distance):
    assert MemoryScope.parse(query).distance(MemoryScope.parse(memory)) == distance


def _naive_distance(query, memory):
    mine = [(level.kind, level.id) for level in query.levels]
    theirs = [(level.kind, level.id) for level in memory.levels]
    return len(mine) - len(theirs) if mine[: len(theirs)] == theirs else -1


@quick
@given(near, near)
def test_distance_agrees_with_comparing_levels(query, memory):
    assert query.distance(memory) == _naive_distance(query, memory)


@quick
@given(scopes)
def test_every_ancestor_is_seen_at_its_height(scope):
    for height, ancestor in enumerate((scope, *scope.ancestors())):
        assert scope.distance(ancestor) == height
        assert ancestor.distance(scope) == (0 if height == 0 else -1)


@quick
@given(scopes)
def test_the_text_form_gives_back_the_scope(scope):
    assert MemoryScope.parse(str(scope)) == scope
    assert len(str(scope).split("/")) == scope.depth
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in str(scope))


@quick
@given(scopes, scopes)
def test_equal_text_means_equal_scope(left, right):
    assert (str(left) == str(right)) == (left.levels == right.levels) == (left == right)


def test_reserved_and_control_characters_become_upper_case_escapes():
    scope = MemoryScope.of(("a:b", "c/d%e\n\x7f\x85ü"))
    assert str(scope) == "a%3Ab:c%2Fd%25e%0A%7F%C2%85ü"


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("org:%61cme", [("org", "acme")]),
        ("org:%c3%a9", [("org", "é")]),
        ("org:%C3%A9", [("org", "é")]),
        ("%6Frg:a%2fb", [("org", "a/b")]),
        ("org:a%3Ab", [("org", "a:b")]),
        ("org: a ", [("org", " a ")]),
    ],
)
def test_parse_takes_any_well_formed_escape(text, levels):
    assert MemoryScope.parse(text) == MemoryScope.of(*levels)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "org",
        "org:",
        ":acme",
        ":",
        "org:acme/",
        "/org:acme",
        "org:acme//user:u1",
        "org:acme/user",
        "org:a:b",
        "org:%",
        "org:%4",
        "org:%G1",
        "org:%+1",
        "org:% 41",
        "org:%４1",
        "org:%FF",
        "org:%C3",
        "org:%C3é",
        "org:%ED%A0%80",
        "org:%C0%AF",
        "org:%00",
        "org:\x00",
        "org:%20",
        "org: ",
        "org:\ud800",
        "/".join(["a:b"] * 17),
        "org:" + "x" * 256,
        "k" * 64 + ":acme",
        "org:" + "%C3%A9" * 128,
    ],
)
def test_parse_refuses_what_is_no_scope(text):
    with pytest.raises(MemoryContractError):
        MemoryScope.parse(text)


@pytest.mark.parametrize(
    ("kind", "id"),
    [
        ("", "a"),
        ("a", ""),
        (" ", "a"),
        ("a", "\t\u2003"),
        ("a\x00", "a"),
        ("a", "a\x00"),
        ("a", "\udc00"),
        ("é" * 32, "a"),
        ("a", "\U0001f600" * 64),
        (1, "a"),
        ("a", None),
        (b"a", "a"),
    ],
)
def test_a_level_keeps_its_rules(kind, id):
    with pytest.raises(MemoryContractError) as caught:
        MemoryScope.of((kind, id))
    assert caught.value.field in ("scope.kind", "scope.id")


def test_levels_may_be_as_long_as_the_limits_say():
    scope = MemoryScope.of(*[("é" * 31 + "k", "\U0001f600" * 63 + "abc")] * 16)
    assert MemoryScope.parse(str(scope)) == scope


@pytest.mark.parametrize("levels", [(), [("a", "b")] * 17, "org:acme", 7, [("a", "b", "c")], ["ab"], [None]])
def test_a_scope_has_one_to_sixteen_levels(levels):
    with pytest.raises(MemoryContractError):
        MemoryScope(levels)


def test_a_seventeenth_level_is_refused():
    with pytest.raises(MemoryContractError):
        MemoryScope.of(*[("a", "b")] * 16).child("a", "b")


@pytest.mark.parametrize("value", [None, 1, b"org:acme", ("org", "acme")])
def test_parse_and_distance_refuse_other_types(value):
    with pytest.raises(MemoryContractError):
        MemoryScope.parse(value)
    with pytest.raises(MemoryContractError):
        MemoryScope.parse("org:acme").distance(value)


def test_names_are_compared_code_point_by_code_point():
    assert MemoryScope.of(("org", "é")) != MemoryScope.of(("org", "e\u0301"))


def test_scopes_are_values():
    scope = MemoryScope.parse("org:acme/user:u1")
    again = pickle.loads(pickle.dumps(scope))
    assert again == scope
    assert hash(again) == hash(scope)
    assert {scope: 1}[MemoryScope.parse("org:acme/user:u1")] == 1
    assert scope != "org:acme/user:u1"
    assert eval(repr(scope)) == scope
    with pytest.raises(AttributeError):
        scope.levels = ()


def test_enumerations_name_levels_by_their_value():
    class Kind(StrEnum):
        ORG = "org"

    scope = MemoryScope.of((Kind.ORG, "acme"))
    assert type(scope.levels[0].kind) is str
    assert str(scope) == "org:acme"
