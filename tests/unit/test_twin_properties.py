"""Whole random worlds in memory: a search is right by a second, plainer look at the same records."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symfonic_pg.memory.documents import contains
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.observations import Observations
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.retrieval import RetrievalCoordinator
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.testing import InMemoryCandidateSource, InMemoryRepository
from symfonic_pg.testing.contract.base import refused
from symfonic_pg.testing.strategies import (
    DIMENSION,
    MOMENT,
    World,
    any_scopes,
    policies,
    queries,
    records,
    scopes,
    world,
    worlds,
)

ROOT = MemoryScope.of(("org", "acme"))
FEWER = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def written(chosen: World) -> InMemoryRepository:
    repository = InMemoryRepository()
    await repository.register_model("mini", DIMENSION, 0.25)
    await chosen.write(repository, "mini")
    return repository


def eligible(chosen: World, layers: frozenset[MemoryLayer]) -> dict[str, MemoryRecord]:
    """What any route may find, by the words of the rule."""
    query, moment = chosen.query, MOMENT
    found = {}
    for record in chosen.records:
        path, mine = query.scope.levels, record.scope.levels
        visible = path[: len(mine)] == mine
        live = (
            (record.valid_from is None or record.valid_from <= moment)
            and (record.valid_until is None or record.valid_until > moment)
            and (record.expires_at is None or record.expires_at > moment)
        )
        filtered = query.where is None or contains(record.metadata, query.where)
        if visible and live and filtered and record.layer in layers:
            found[record.record_id] = record
    return found


def per_level(records: dict[str, MemoryRecord]) -> dict[MemoryScope, set[str]]:
    levels: dict[MemoryScope, set[str]] = {}
    for record in records.values():
        levels.setdefault(record.scope, set()).add(record.record_id)
    return levels


@FEWER
@given(worlds(ROOT, per_level=20), st.integers(1, 12))
async def test_every_route_holds_its_best_at_every_level(chosen: World, fanout: int) -> None:
    repository = await written(chosen)
    layers = chosen.query.layers
    seen = await repository.search(chosen.query, layers, model="mini", fanout=fanout)
    at_most = max(fanout, chosen.query.limit)
    allowed = eligible(chosen, layers)
    assert {one.record.record_id for one in seen.found} <= allowed.keys()
    everything = {
        one.record.record_id: one for one in await repository.observe(chosen.query, allowed, model="mini")
    }

    def worth(route: str, record_id: str) -> tuple[float, ...] | None:
        """What the route prefers, bigger first; None for what it does not find."""
        one, record = everything[record_id], allowed[record_id]
        newest = (record.updated_at - datetime.min.replace(tzinfo=MOMENT.tzinfo)).total_seconds()
        match route:
            case "recent":
                return (newest,)
            case "salient":
                return None if record.salience is None else (record.salience, newest)
            case "profile":
                salience = -1.0 if record.salience is None else record.salience
                return (salience, newest) if record.kind == "profile" else None
            case "vector":
                return None if one.cosine is None else (one.cosine,)
            case "lexical":
                return (one.lex,) if one.lex else None
            case _:
                return (-one.hops,) if one.hops else None

    for route, tally in seen.routes.items():
        found = {one.record.record_id for one in seen.found if route in one.routes}
        assert len(found) == tally
        for level in per_level(allowed).values():
            wanted = {name: value for name in level if (value := worth(route, name)) is not None}
            kept = found & level
            assert len(kept) == min(at_most, len(wanted)), route
            lost = [wanted[name] for name in wanted.keys() - kept]
            assert not lost or max(lost) <= min(wanted[name] for name in kept), route


def test_a_world_can_be_made_again_from_what_it_shows() -> None:
    made = world(ROOT, 17, [3, 0, 5])
    again = eval(repr(made), {"world": world, "MemoryScope": MemoryScope})
    assert again == made
    assert len(made.records) == 8
    assert {record.scope.root for record in made.records} == {ROOT}


@FEWER
@given(worlds(ROOT, per_level=12))
async def test_what_is_elsewhere_moves_nothing(chosen: World) -> None:
    alone = InMemoryRepository()
    await alone.register_model("mini", DIMENSION, 0.25)
    scope = chosen.query.scope
    keep = [place for place, record in enumerate(chosen.records) if scope.distance(record.scope) >= 0]
    mine = World(
        tuple(chosen.records[place] for place in keep),
        tuple(chosen.vectors[place] for place in keep),
        tuple((at, edge) for at, edge in chosen.edges if scope.distance(at) >= 0),
        tuple((at, name) for at, name in chosen.uses if scope.distance(at) >= 0),
        chosen.query,
    )
    await mine.write(alone, "mini")
    assert await looked(alone, chosen.query) == await looked(await written(chosen), chosen.query)


async def looked(repository: InMemoryRepository, query: MemoryQuery) -> object:
    seen: Observations = await repository.search(query, RETRIEVABLE_LAYERS, model="mini")
    observed = {
        one.record.record_id: (
            one.distance,
            one.routes,
            one.cosine,
            one.lex,
            one.hops,
            one.record.access_count,
        )
        for one in seen.found
    }
    return observed, dict(seen.routes), dict(seen.completeness), await repository.count(query.scope)


@FEWER
@given(worlds(ROOT, per_level=15), policies())
async def test_the_books_of_a_recall_balance(chosen: World, policy: RetrievalPolicy) -> None:
    source = InMemoryCandidateSource(await written(chosen), model="mini", fanout=5)
    result = await RetrievalCoordinator(source=source, policy=policy).retrieve(chosen.query)
    returned = [memory.record.record_id for memory in result.memories]
    dropped = [record_id for record_id, _ in result.dropped]
    assert len(returned) <= chosen.query.limit
    assert len(set(returned + dropped)) == len(returned) + len(dropped)
    found = await source.search(chosen.query, chosen.query.layers)
    if chosen.query.layers & RETRIEVABLE_LAYERS:
        assert {candidate.record.record_id for candidate in found} == set(returned + dropped)
    for candidate in found:
        for value in candidate.signals.present().values():
            assert 0.0 <= value <= 1.0


@FEWER
@given(worlds(ROOT, per_level=15))
async def test_pages_of_any_size_join_to_the_whole(chosen: World) -> None:
    repository = await written(chosen)
    whole = await repository.list(chosen.query.scope, limit=1000)
    assert len(whole) == await repository.count(chosen.query.scope)
    for first, second in pairwise(whole):
        assert (first.updated_at, second.record_id) > (second.updated_at, first.record_id)
    pages: list[MemoryRecord] = []
    while page := await repository.list(chosen.query.scope, limit=4, after=pages[-1] if pages else None):
        pages += page
    assert pages == whole


@FEWER
@given(st.lists(records(scopes(ROOT)), max_size=12), st.data())
async def test_a_batch_is_all_or_nothing(batch: list[MemoryRecord], data: st.DataObject) -> None:
    repository = InMemoryRepository()
    scopes_of: dict[str, set[MemoryScope]] = {}
    for record in batch:
        scopes_of.setdefault(record.record_id, set()).add(record.scope)
    if any(len(places) > 1 for places in scopes_of.values()):
        with refused():
            await repository.remember(batch)
        assert all([await repository.count(record.scope) == 0 for record in batch])
        return
    report = await repository.remember(batch)
    assert (report.inserted, report.total) == (len(scopes_of), len(scopes_of))
    last = {record.record_id: record for record in batch}
    again = await repository.remember(last.values())
    assert (again.unchanged, again.total) == (len(last), len(last))
    for record in last.values():
        assert list(await repository.get(record.scope, [record.record_id])) == [record]
    query = data.draw(queries(scopes(ROOT), sorted(last)))
    seen = await repository.search(query, query.layers)
    assert all(query.scope.distance(one.record.scope) == one.distance >= 0 for one in seen.found)


@given(st.lists(any_scopes(), min_size=1, max_size=6, unique=True))
async def test_scopes_in_any_script_keep_apart(places: list[MemoryScope]) -> None:
    repository = InMemoryRepository()
    for number, scope in enumerate(places):
        await repository.remember([MemoryRecord(f"m{number}", scope, MemoryLayer.SEMANTIC, "a note")])
    for scope in places:
        visible = [place for place in places if scope.distance(place) >= 0]
        assert await repository.count(scope) == len(visible)
        assert MemoryScope.parse(str(scope)) == scope
