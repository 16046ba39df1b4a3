"""The contract has teeth: repositories that go wrong in ways known from the field do not pass it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from symfonic_pg.memory import vectors
from symfonic_pg.memory.batches import BatchItem
from symfonic_pg.memory.records import MemoryRecord, RememberReport
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.testing import CONTRACT, InMemoryRepository, looking, storage, twin
from symfonic_pg.testing.looking import Lookout
from symfonic_pg.testing.storage import StoredMemory, Tenant, Usage

BY_NAME = {behaviour.name: behaviour for behaviour in CONTRACT}
FAULTS: list[tuple[str, Callable[[pytest.MonkeyPatch], None]]] = []
Fault = Callable[[pytest.MonkeyPatch], None]


def caught_by(name: str) -> Callable[[Fault], Fault]:
    def keep(fault: Fault) -> Fault:
        FAULTS.append((name, fault))
        return fault

    return keep


@pytest.mark.parametrize(("name", "fault"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
async def test_the_contract_catches(name: str, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    await BY_NAME[name](InMemoryRepository())
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        await BY_NAME[name](InMemoryRepository())


def _visible_if(rule: Callable[[MemoryScope, MemoryScope], bool]) -> Fault:
    def visible(self: Tenant, scope: MemoryScope) -> dict[str, StoredMemory]:
        return {key: memory for key, memory in self.memories.items() if rule(scope, memory.record.scope)}

    return lambda patch: patch.setattr(Tenant, "visible", visible)


def _remembering(change: Callable[[InMemoryRepository, BatchItem], BatchItem]) -> Fault:
    real = InMemoryRepository._write

    def write(self: InMemoryRepository, item: BatchItem, *rest: Any) -> RememberReport:
        return real(self, change(self, item), *rest)

    return lambda patch: patch.setattr(InMemoryRepository, "_write", write)


@caught_by("a_scope_sees_itself_and_its_ancestors_alone")
def siblings_are_visible(patch: pytest.MonkeyPatch) -> None:
    _visible_if(lambda scope, other: True)(patch)


@caught_by("a_scope_sees_itself_and_its_ancestors_alone")
def descendants_are_visible(patch: pytest.MonkeyPatch) -> None:
    _visible_if(lambda scope, other: scope.distance(other) >= 0 or other.distance(scope) >= 0)(patch)


@caught_by("a_level_of_a_thousand_names_is_told_apart")
def a_scope_is_a_text_prefix(patch: pytest.MonkeyPatch) -> None:
    _visible_if(lambda scope, other: str(scope).startswith(str(other)))(patch)


@caught_by("the_kind_of_a_level_is_part_of_its_name")
def a_tenant_is_the_id_of_its_root(patch: pytest.MonkeyPatch) -> None:
    def tenant(self: InMemoryRepository, scope: MemoryScope) -> Tenant:
        return self._tenants.setdefault(scope.root.id, Tenant())

    patch.setattr(InMemoryRepository, "_tenant", tenant)


@caught_by("forged_ids_of_another_tenant_open_no_door")
def a_graph_forgets_the_tenant(patch: pytest.MonkeyPatch) -> None:
    def tenant(self: InMemoryRepository, scope: MemoryScope) -> Tenant:
        return self._tenants.setdefault("all", Tenant())

    patch.setattr(InMemoryRepository, "_tenant", tenant)
    _visible_if(lambda scope, other: True)(patch)


@caught_by("forget_deletes_exactly_at_the_scope")
def forget_reaches_up(patch: pytest.MonkeyPatch) -> None:
    def at(self: InMemoryRepository, scope: MemoryScope, record_ids: Iterable[str]) -> list[str]:
        return [name for name in dict.fromkeys(record_ids) if name in self._tenant(scope).visible(scope)]

    patch.setattr(InMemoryRepository, "_at", at)


@caught_by("erase_reaches_down_and_nowhere_else")
def erase_leaves_what_lies_below(patch: pytest.MonkeyPatch) -> None:
    def erase(self: Tenant, scope: MemoryScope) -> int:
        return self.remove([key for key, memory in self.memories.items() if memory.record.scope == scope])

    patch.setattr(Tenant, "erase", erase)


@caught_by("what_hung_on_a_forgotten_record_is_gone_with_it")
def edges_outlive_their_ends(patch: pytest.MonkeyPatch) -> None:
    def remove(self: Tenant, record_ids: Iterable[str]) -> int:
        return len([self.memories.pop(record_id) for record_id in set(record_ids)])

    patch.setattr(Tenant, "remove", remove)


@caught_by("a_memory_is_valid_from_then_until_just_before")
def valid_until_is_inclusive(patch: pytest.MonkeyPatch) -> None:
    def is_live(record: MemoryRecord, moment: datetime) -> bool:
        return record.valid_until is None or moment <= record.valid_until

    patch.setattr(looking, "is_live", is_live)


@caught_by("what_is_not_valid_takes_no_place_in_a_route")
def validity_is_judged_after_the_limit(patch: pytest.MonkeyPatch) -> None:
    real_filled, real_live = Lookout._filled, looking.is_live

    def filled(self: Lookout, *arguments: Any) -> list[str]:
        found = real_filled(self, *arguments)
        return [name for name in found if real_live(self.lineage[name].record, self.moment)]

    patch.setattr(looking, "is_live", lambda record, moment: True)
    patch.setattr(Lookout, "_filled", filled)


@caught_by("a_crowded_level_never_crowds_out_another")
def levels_share_one_fanout(patch: pytest.MonkeyPatch) -> None:
    def filled(self: Lookout, route: str, live: Iterable[StoredMemory], fanout: int) -> list[str]:
        holds, order = self._rules(route)
        return [memory.record.record_id for memory in sorted(filter(holds, live), key=order)[:fanout]]

    patch.setattr(Lookout, "_filled", filled)


@caught_by("what_siblings_store_moves_no_number")
def term_statistics_are_the_tenants(patch: pytest.MonkeyPatch) -> None:
    real = Lookout.__init__

    def init(self: Lookout, tenant: Tenant, *arguments: Any, **options: Any) -> None:
        real(self, tenant, *arguments, **options)
        self.__dict__["idf"] = {
            term: 1.0 + sum(term in memory.term_counts for memory in tenant.memories.values())
            for term in frozenset().union(*self.asked.values())
        }

    patch.setattr(Lookout, "__init__", init)


@caught_by("the_statistics_are_of_the_lineage_every_layer_valid_or_not")
def term_statistics_are_of_live_memories_only(patch: pytest.MonkeyPatch) -> None:
    real = Lookout.__init__

    def init(self: Lookout, *arguments: Any, **options: Any) -> None:
        real(self, *arguments, **options)
        self.lineage = {
            name: memory
            for name, memory in self.lineage.items()
            if looking.is_live(memory.record, self.moment)
        }

    patch.setattr(Lookout, "__init__", init)


@caught_by("each_record_is_matched_in_its_own_language")
def one_language_cuts_every_text(patch: pytest.MonkeyPatch) -> None:
    _remembering(lambda self, item: replace(item, record=replace(item.record, language=None)))(patch)


@caught_by("a_cue_of_stop_words_has_no_lex_where_they_are_left_out")
def no_term_scores_zero_instead_of_none(patch: pytest.MonkeyPatch) -> None:
    real = looking.lex
    patch.setattr(looking, "lex", lambda *arguments: real(*arguments) or 0.0)


@caught_by("cosines_are_those_of_the_vectors_whatever_their_length")
def vectors_are_rounded_before_they_are_scaled(patch: pytest.MonkeyPatch) -> None:
    def rounded(value: Any, model: object, field: str = "embedding") -> tuple[float, ...]:
        return vectors.half([max(-65_000.0, min(65_000.0, number)) for number in value])

    patch.setattr(twin, "checked_vector", rounded)


@caught_by("an_update_changes_what_the_routes_find")
def vectors_outlive_their_text(patch: pytest.MonkeyPatch) -> None:
    def update(self: InMemoryRepository, memory: StoredMemory, record: MemoryRecord) -> None:
        kept = dict(memory.vectors)
        real(self, memory, record)
        memory.vectors = kept

    real = InMemoryRepository._update
    patch.setattr(InMemoryRepository, "_update", update)


@caught_by("created_at_stays_unless_an_update_gives_one")
def an_update_resets_created_at(patch: pytest.MonkeyPatch) -> None:
    def update(self: InMemoryRepository, memory: StoredMemory, record: MemoryRecord) -> None:
        memory.record = storage.with_fields(record)

    patch.setattr(InMemoryRepository, "_update", update)


@caught_by("an_update_takes_the_new_updated_at_and_never_touches_usage")
def an_update_resets_usage(patch: pytest.MonkeyPatch) -> None:
    def update(self: InMemoryRepository, memory: StoredMemory, record: MemoryRecord) -> None:
        memory.record = storage.with_fields(record, created_at=memory.record.created_at)

    patch.setattr(InMemoryRepository, "_update", update)


@caught_by("a_record_that_says_the_same_is_not_written")
def everything_is_rewritten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(twin, "same_memory", lambda stored, given: False)


@caught_by("metadata_that_only_python_calls_equal_is_an_update")
def documents_are_compared_as_python_does(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(storage, "same_document", lambda left, right: left == right)


@caught_by("where_contains_as_jsonb_does")
def containment_is_equality_of_values(patch: pytest.MonkeyPatch) -> None:
    def contains(document: Any, part: Any) -> bool:
        return all(key in document and document[key] == value for key, value in part.items())

    patch.setattr(looking, "contains", contains)


@caught_by("one_bad_record_leaves_the_whole_batch_unwritten")
def a_batch_is_written_until_the_bad_record(patch: pytest.MonkeyPatch) -> None:
    real = InMemoryRepository._remember

    def remember(
        self: InMemoryRepository, records: Any, embeddings: Any, model: Any, version: str, start: int
    ) -> RememberReport:
        report = RememberReport()
        given = list(records)
        for place, record in enumerate(given):
            vector = None if embeddings is None else [list(embeddings)[place]]
            report += real(self, [record], vector, model, version, start + place)
        return report

    patch.setattr(InMemoryRepository, "_remember", remember)


@caught_by("an_id_of_another_scope_is_refused_without_naming_the_scope")
def an_error_gives_away_the_scope(patch: pytest.MonkeyPatch) -> None:
    real = twin.elsewhere
    patch.setattr(
        twin, "elsewhere", lambda position, name: type(real(position, name))(f"{name} at secret-user")
    )


@caught_by("a_use_is_counted_at_its_scope_and_seen_from_there_down")
def a_use_is_seen_by_siblings(patch: pytest.MonkeyPatch) -> None:
    def seen_from(self: StoredMemory, scope: MemoryScope) -> MemoryRecord:
        uses = [usage.count for usage in self.uses.values()]
        return storage.with_fields(self.record, access_count=self.record.access_count + sum(uses))

    patch.setattr(StoredMemory, "seen_from", seen_from)


@caught_by("a_use_changes_nothing_else")
def a_use_moves_updated_at(patch: pytest.MonkeyPatch) -> None:
    real = InMemoryRepository.reinforce

    async def reinforce(self: InMemoryRepository, scope: MemoryScope, record_ids: Iterable[str]) -> int:
        for memory in self._tenant(scope).memories.values():
            memory.record = storage.with_fields(memory.record, updated_at=self._clock())
        return await real(self, scope, record_ids)

    patch.setattr(InMemoryRepository, "reinforce", reinforce)


@caught_by("reinforce_counts_visible_records_once")
def a_use_is_counted_once_for_each_mention(patch: pytest.MonkeyPatch) -> None:
    async def reinforce(self: InMemoryRepository, scope: MemoryScope, record_ids: Iterable[str]) -> int:
        seen = self._tenant(scope).visible(scope)
        used = [seen[name] for name in record_ids if name in seen]
        for memory in used:
            memory.uses.setdefault(scope, Usage(0, self._clock())).count += 1
        return len(used)

    patch.setattr(InMemoryRepository, "reinforce", reinforce)


@caught_by("hops_are_the_fewest_edges_in_either_direction")
def hops_follow_the_direction_of_edges(patch: pytest.MonkeyPatch) -> None:
    def directed(edges: Iterable[tuple[str, str, str]], starts: Iterable[str], most: int) -> dict[str, int]:
        steps: dict[str, set[str]] = {}
        for source, target, _ in edges:
            steps.setdefault(source, set()).add(target)
        return {
            name: hops for start in starts for name, hops in looking.distances(steps, start, most).items()
        }

    patch.setattr(twin, "nearest_hops", directed)


@caught_by("no_path_leads_through_what_is_not_visible")
def an_edge_shows_what_its_ends_hide(patch: pytest.MonkeyPatch) -> None:
    def visible_edges(self: Tenant, scope: MemoryScope) -> dict[tuple[str, str, str], float]:
        return {key[1:]: weight for key, weight in self.edges.items() if scope.distance(key[0]) >= 0}

    patch.setattr(Tenant, "visible_edges", visible_edges)


@caught_by("of_one_edge_at_several_heights_the_nearest_counts")
def the_highest_edge_counts(patch: pytest.MonkeyPatch) -> None:
    def visible_edges(self: Tenant, scope: MemoryScope) -> dict[tuple[str, str, str], float]:
        seen = [key for key in self.edges if scope.distance(key[0]) >= 0]
        seen.sort(key=lambda key: scope.distance(key[0]))
        return {key[1:]: self.edges[key] for key in seen}

    patch.setattr(Tenant, "visible_edges", visible_edges)


@caught_by("turns_are_ordered_by_place_and_then_by_arrival")
def turns_are_ordered_by_arrival_alone(patch: pytest.MonkeyPatch) -> None:
    async def recent(self: InMemoryRepository, scope: MemoryScope, limit: int) -> list[Any]:
        return list(self._tenant(scope).turns.get(scope, {}).values())[-limit:]

    patch.setattr(InMemoryRepository, "recent", recent)


@caught_by("pages_of_a_list_join_without_gap_or_repeat")
def pages_start_at_a_moment_instead_of_a_key(patch: pytest.MonkeyPatch) -> None:
    real = twin.page_key
    patch.setattr(twin, "page_key", lambda updated_at, record_id: real(updated_at, "\U0010ffff"))


@caught_by("list_is_newest_first_and_then_by_id")
def equals_are_listed_as_they_came(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(twin, "newest_first", lambda record: looking.page_key(record.updated_at, ""))


@caught_by("concurrent_recalls_on_one_source_never_mix")
def a_source_publishes_before_it_returns(patch: pytest.MonkeyPatch) -> None:
    import asyncio

    from symfonic_pg.memory.observing import ObservingSource

    real = ObservingSource.search

    async def search(self: ObservingSource, *arguments: Any) -> Any:
        found = await real(self, *arguments)
        await asyncio.sleep(0)
        return found

    patch.setattr(ObservingSource, "search", search)
