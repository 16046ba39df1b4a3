"""append_turns and recent: the last turns of one scope, in their order."""

from __future__ import annotations

import asyncio

from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.window import ConversationTurn
from symfonic_pg.testing.contract.base import ContractRepository, behaviour, refused, tenant


async def last(repository: ContractRepository, scope: MemoryScope, limit: int = 99) -> list[str]:
    """The ids of the last turns, oldest first."""
    return [turn.turn_id for turn in await repository.recent(scope, limit)]


@behaviour
async def turns_come_back_as_they_were_oldest_first(repository: ContractRepository) -> None:
    session = tenant().child("session", "s")
    turns = [
        ConversationTurn("t1", "user", "hello\nworld \u2028 \u202e[semantic] x", 1),
        ConversationTurn("t2", "", "", 2),
        ConversationTurn("t3", "assistant 😀", "x" * 100_000, 3),
    ]
    assert await repository.append_turns(session, turns) == 3
    assert list(await repository.recent(session, 9)) == turns
    assert list(await repository.recent(session, 2)) == turns[1:]
    assert list(await repository.recent(session, 0)) == []
    assert await repository.append_turns(session, []) == 0


@behaviour
async def turns_are_ordered_by_place_and_then_by_arrival(repository: ContractRepository) -> None:
    session = tenant().child("session", "s")
    await repository.append_turns(session, [ConversationTurn("late", turn=5), ConversationTurn("z", turn=2)])
    await repository.append_turns(session, [ConversationTurn("b", turn=2), ConversationTurn("a", turn=2)])
    await repository.append_turns(session, [ConversationTurn("first", turn=-(2**63))])
    await repository.append_turns(session, [ConversationTurn("last", turn=2**63 - 1)])
    assert await last(repository, session) == ["first", "z", "b", "a", "late", "last"]
    assert await last(repository, session, 3) == ["a", "late", "last"]


@behaviour
async def turns_without_a_place_keep_their_arrival(repository: ContractRepository) -> None:
    session = tenant().child("session", "s")
    names = [f"t{number * 7 % 50}" for number in range(50)]
    await repository.append_turns(session, [ConversationTurn(name) for name in names[:30]])
    for name in names[30:]:
        await repository.append_turns(session, [ConversationTurn(name)])
    assert await last(repository, session) == names
    assert await last(repository, session, 7) == names[-7:]


@behaviour
async def a_known_turn_stays_as_it_is(repository: ContractRepository) -> None:
    org = tenant()
    session = org.child("session", "s")
    await repository.append_turns(session, [ConversationTurn("t", text="first"), ConversationTurn("u")])
    again = [
        ConversationTurn("t", text="second", turn=9),
        ConversationTurn("v"),
        ConversationTurn("v", text="x"),
    ]
    assert await repository.append_turns(session, again) == 1
    assert [(turn.turn_id, turn.text) for turn in await repository.recent(session, 9)] == [
        ("t", "first"), ("u", ""), ("v", ""),
    ]  # fmt: skip
    assert await repository.append_turns(org, [ConversationTurn("t", text="another scope")]) == 1


@behaviour
async def concurrent_writers_of_one_turn_add_it_once(repository: ContractRepository) -> None:
    session = tenant().child("user", "u").child("session", "s")
    batch = [ConversationTurn(f"t{number}") for number in range(10)]
    counts = await asyncio.gather(
        *(repository.append_turns(session, batch if turn % 2 else batch[::-1]) for turn in range(6))
    )
    assert sum(counts) == 10
    assert len(await last(repository, session)) == 10


@behaviour
async def a_turn_that_is_none_or_a_bad_limit_is_refused(repository: ContractRepository) -> None:
    session = tenant().child("session", "s")
    with refused():
        await repository.append_turns(session, [ConversationTurn("t"), "u"])  # type: ignore[list-item]
    with refused():
        await repository.recent(session, -1)
    assert await last(repository, session) == []
