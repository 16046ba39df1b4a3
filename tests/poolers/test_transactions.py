"""The host's own transaction behind a pooler: memory and order in one, or neither."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from symfonic_pg.memory import MemoryRecord, MemoryScope
from symfonic_pg.store import MemoryStore
from tests.integration.executor_kinds import engine_for
from tests.poolers.kinds import ENGINE_OPTIONS

USER = MemoryScope.parse("org:acme/user:u1")


@pytest.mark.parametrize("driver", ENGINE_OPTIONS)
async def test_an_order_and_its_memory_live_and_die_together(pooled_database: str, driver: str) -> None:
    engine = engine_for(pooled_database, driver, **ENGINE_OPTIONS[driver])
    store = MemoryStore.on(engine)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE orders (number integer PRIMARY KEY)"))
    for number, kept in ((1, True), (2, False), (3, True)):
        async with AsyncSession(engine) as session:
            await session.execute(text("INSERT INTO orders VALUES (:number)"), {"number": number})
            memory = MemoryRecord(f"order-{number}", USER, "episodic", f"Ordered number {number}")
            await store.using(session).remember(memory)
            await (session.commit() if kept else session.rollback())
    async with engine.connect() as connection:
        orders = (await connection.execute(text("SELECT number FROM orders ORDER BY 1"))).scalars().all()
    assert orders == [1, 3]
    assert {record.record_id for record in await store.list(USER)} == {"order-1", "order-3"}
    await engine.dispose()
