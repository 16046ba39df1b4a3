"""Hypothesis strategies for scopes, records, queries, policies and whole worlds of memories.

Texts are drawn from a small vocabulary and moments from a coarse grid, so that words are shared, scopes
related and edges of validity hit. `worlds` is what a property of a whole repository wants: memories over a
tree of scopes, and one query into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.relevance import RelevanceWeights, ScopeBlend, ScopeBlendMode
from symfonic_pg.memory.scope import MemoryScope, ScopeLevel

MOMENT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
VOCABULARY = (
    *("refund", "refunds", "policy", "customer", "customers", "asked", "asking", "invoice", "late", "tea"),
    *("the", "of", "a", "was", "not", "shipping", "ship", "ships", "giraffe", "zebra"),
)
LAYERS = sorted(RETRIEVABLE_LAYERS)
LANGUAGES = (None, None, None, "english", "simple", "german")
DIMENSION = 3

_NAMES = st.sampled_from(["u1", "u2", "a b", "a/b", "%", "é"])
_ANY_TEXT = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")


def scopes(root: MemoryScope | None = None, *, max_depth: int = 4) -> SearchStrategy[MemoryScope]:
    """Scopes of one tenant, related often: few kinds, few ids."""
    top = MemoryScope.of(("org", "acme")) if root is None else root
    levels = st.lists(st.tuples(st.sampled_from(["team", "user"]), _NAMES), max_size=max_depth - 1)
    return levels.map(lambda below: MemoryScope((*top.levels, *(ScopeLevel(*level) for level in below))))


def any_scopes() -> SearchStrategy[MemoryScope]:
    """Every kind of scope that the vocabulary allows, in any script."""

    def named(limit: int) -> SearchStrategy[str]:
        return st.text(_ANY_TEXT, min_size=1, max_size=limit // 4).filter(str.strip)

    return st.lists(st.builds(ScopeLevel, named(63), named(255)), min_size=1, max_size=16).map(
        lambda levels: MemoryScope(tuple(levels))
    )


def texts() -> SearchStrategy[str]:
    """Texts of a few words."""
    return st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=8).map(" ".join)


def cues() -> SearchStrategy[str]:
    """What is asked: a few words, stop words alone, or nothing."""
    return st.one_of(st.just(""), st.just("of the"), texts())


def moments() -> SearchStrategy[datetime]:
    """A few moments around MOMENT, which is one of them."""
    return st.integers(-3, 3).map(lambda days: MOMENT + timedelta(days=days))


def embeddings(dimension: int = DIMENSION) -> SearchStrategy[tuple[float, ...]]:
    """Vectors that are not all zero."""
    return st.lists(st.floats(-1, 1, width=16), min_size=dimension, max_size=dimension).filter(any).map(tuple)


def metadata() -> SearchStrategy[dict[str, Any]]:
    """Small documents, in which equal keys and values are frequent."""
    scalars = st.sampled_from([None, True, False, 0, 1, 1.0, "1", "x"])
    values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | _objects(inner), max_leaves=4)
    return _objects(values)


def _objects(values: SearchStrategy[Any]) -> SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2)


@st.composite
def records(
    draw: st.DrawFn, at: SearchStrategy[MemoryScope] | None = None, ids: SearchStrategy[str] | None = None
) -> MemoryRecord:
    """Records at these scopes, under these ids."""
    start, end = sorted([draw(moments()), draw(moments())])
    created = draw(moments())
    return MemoryRecord(
        draw(ids if ids is not None else st.integers(0, 99).map("m{}".format)),
        draw(at if at is not None else scopes()),
        draw(st.sampled_from(LAYERS)),
        draw(texts()),
        draw(st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        draw(st.sampled_from(["", "", "fact", "profile"])),
        created_at=created,
        updated_at=draw(moments()),
        access_count=draw(st.sampled_from([0, 0, 1, 7, 200])),
        valid_from=draw(st.sampled_from([None, start])),
        valid_until=draw(st.sampled_from([None, end])),
        expires_at=draw(st.none() | moments()),
        language=draw(st.sampled_from(LANGUAGES)),
        metadata=draw(metadata()),
    )


@st.composite
def queries(
    draw: st.DrawFn, at: SearchStrategy[MemoryScope] | None = None, context: Sequence[str] = ()
) -> MemoryQuery:
    """Queries at these scopes; `context` are record ids that the conversation may be about."""
    return MemoryQuery(
        draw(at if at is not None else scopes()),
        draw(cues()),
        layers=frozenset(draw(st.sets(st.sampled_from(list(MemoryLayer)), min_size=1))),
        limit=draw(st.sampled_from([1, 3, 10, 1000])),
        max_chars=draw(st.none() | st.integers(0, 200)),
        embedding=draw(st.none() | embeddings()),
        context_ids=draw(st.lists(st.sampled_from(context), max_size=3)) if context else (),
        as_of=MOMENT,
        where=draw(st.none() | metadata()),
    )


def policies() -> SearchStrategy[RetrievalPolicy]:
    """Policies of every mode."""
    share = st.sampled_from([0.0, 0.1, 0.5, 1.0])
    blends = st.builds(ScopeBlend, st.sampled_from(ScopeBlendMode), st.sampled_from([0.5, 1.0, 2.0]), share)
    weights = st.builds(RelevanceWeights, st.sampled_from([0.5, 1.0]), *[share] * 4)
    return st.builds(
        RetrievalPolicy,
        weights=weights,
        blend=blends,
        min_relevance=share,
        min_salience=st.sampled_from([0.0, 0.0, 0.25]),
        profile_slots=st.integers(0, 2),
    )


@dataclass(frozen=True, slots=True, repr=False)
class World:
    """Memories over a tree of scopes with their vectors, edges and uses, and a query into it.

    Each edge and each use comes with the scope it is written at.
    """

    records: tuple[MemoryRecord, ...]
    vectors: tuple[tuple[float, ...] | None, ...]
    edges: tuple[tuple[MemoryScope, Association], ...]
    uses: tuple[tuple[MemoryScope, str], ...]
    query: MemoryQuery
    # How to make it again; a failing example shows this instead of a hundred records.
    made_by: str = "World(…)"

    def __repr__(self) -> str:
        return self.made_by

    async def write(self, repository: Any, model: str) -> None:
        """Write it all to a repository, the vectors as those of `model`, which must be registered."""
        await repository.remember(self.records, self.vectors, model=model)
        for scope, edge in self.edges:
            await repository.associate(scope, [edge])
        for scope, record_id in self.uses:
            await repository.reinforce(scope, [record_id])


def worlds(root: MemoryScope, *, per_level: int = 40) -> SearchStrategy[World]:
    """Worlds of one tenant, with up to `per_level` memories at each scope.

    A world is made from one number and the sizes of its levels: Hypothesis has few choices to make and to
    shrink, however many memories there are.
    """
    sizes = st.lists(st.integers(0, per_level), min_size=1, max_size=6)
    return st.builds(lambda seed, sizes: world(root, seed, sizes), st.integers(0, 2**32), sizes)


def world(root: MemoryScope, seed: int, sizes: Sequence[int]) -> World:
    """The world of a number: a scope for each size, the first the root, and a query at or below one."""
    random = Random(seed)
    tree = [root]
    while len(tree) < len(sizes):
        tree.append(random.choice(tree).child(random.choice(["team", "user"]), f"s{len(tree)}"))
    found = [
        _record(random, scope, f"m{place}-{number}")
        for place, (scope, size) in enumerate(zip(tree, sizes, strict=True))
        for number in range(size)
    ]
    vectors = [_vector(random) if random.random() < 0.8 else None for _ in found]
    below = [*tree, *(scope.child("session", "unwritten") for scope in tree)]
    edges = [_edge(random, below, found) for _ in range(random.randrange(2 * len(found) + 1))]
    uses = [(random.choice(below), random.choice(found).record_id) for _ in range(len(found) // 2)]
    return World(
        tuple(found),
        tuple(vectors),
        tuple(edges),
        tuple(uses),
        _query(random, below, found),
        f"world(MemoryScope.parse({str(root)!r}), {seed}, {list(sizes)})",
    )


def _record(random: Random, scope: MemoryScope, record_id: str) -> MemoryRecord:
    start, end = sorted([_moment(random), _moment(random)])
    return MemoryRecord(
        record_id,
        scope,
        random.choice(LAYERS),
        _text(random, 8),
        random.choice([None, None, round(random.random(), 3)]),
        random.choice(["", "", "", "profile"]),
        created_at=MOMENT,
        updated_at=MOMENT - timedelta(seconds=random.randrange(2_000_000)),
        access_count=random.choice([0, 0, random.randrange(150)]),
        valid_from=random.choice([None, None, start]),
        valid_until=random.choice([None, None, end]),
        expires_at=random.choice([None, None, None, _moment(random)]),
        language=random.choice(LANGUAGES),
        metadata=random.choice([{}, {"a": 1}, {"a": [1, True]}, {"b": {"c": "x"}}]),
    )


def _edge(
    random: Random, scopes: Sequence[MemoryScope], found: Sequence[MemoryRecord]
) -> tuple[MemoryScope, Association]:
    """An edge, and where it is written: mostly where both ends may be visible, now and then anywhere."""
    source, target = random.choice(found), random.choice(found)
    lower = max((source.scope, target.scope), key=lambda scope: scope.depth)
    lies_at = random.choice([lower, lower, random.choice(scopes)])
    # random() may be 0, which is no weight.
    weight = 1.0 - random.random()
    return lies_at, Association(source.record_id, target, random.choice(["next", "cites"]), weight)


def _query(random: Random, scopes: Sequence[MemoryScope], found: Iterable[MemoryRecord]) -> MemoryQuery:
    record_ids = [record.record_id for record in found]
    return MemoryQuery(
        random.choice(scopes),
        random.choice(["", "of the", _text(random, 4), _text(random, 4)]),
        layers=frozenset(random.sample(LAYERS, random.randint(1, len(LAYERS)))),
        limit=random.choice([1, 3, 10, 100]),
        max_chars=random.choice([None, None, 100]),
        embedding=random.choice([None, _vector(random)]),
        context_ids=random.sample(record_ids, min(len(record_ids), random.randrange(3))),
        as_of=MOMENT,
        where=random.choice([None, None, {"a": 1}, {"a": [1]}, {}]),
    )


def _moment(random: Random) -> datetime:
    return MOMENT + timedelta(days=random.randint(-2, 2))


def _text(random: Random, most: int) -> str:
    return " ".join(random.choices(VOCABULARY, k=random.randint(1, most)))


def _vector(random: Random) -> tuple[float, ...]:
    return tuple(random.uniform(-1.0, 1.0) for _ in range(DIMENSION))
