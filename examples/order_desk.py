"""An order desk: an order and what is remembered about it are written in one transaction, or not at all.

    pip install 'symfonic-pg[embedded,fastapi,sqlalchemy]' uvicorn
    uvicorn --app-dir examples order_desk:app

Orders and memories share the embedded PostgreSQL under $ORDER_DESK (./order-desk).
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from pydantic import BaseModel
from sqlalchemy import CheckConstraint
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from symfonic_pg import MemoryRecord, MemoryScope, MemoryStore
from symfonic_pg.contrib.fastapi import (
    MemoryStoreDep,
    add_error_answers,
    health_router,
    memory_lifespan,
    memory_using,
)
from symfonic_pg.embedders import HashingEmbedder

DESK = MemoryScope.of(("org", "acme"))


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    __table_args__ = (CheckConstraint("pieces > 0"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    item: Mapped[str]
    pieces: Mapped[int]


@asynccontextmanager
async def orders(app: FastAPI) -> AsyncIterator[None]:
    """The application's own part of the lifespan; the memory store is open around it."""
    engine = create_async_engine(app.state.memory_store.dsn.replace("postgresql:", "postgresql+asyncpg:", 1))
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    app.state.sessions = async_sessionmaker(engine, expire_on_commit=False)
    yield
    await engine.dispose()


async def session(request: Request) -> AsyncIterator[AsyncSession]:
    async with request.app.state.sessions() as opened:
        yield opened


Session = Annotated[AsyncSession, Depends(session)]
MemoryHere = Annotated[MemoryStore, Depends(memory_using(session))]

DATA = os.environ.get("ORDER_DESK", "order-desk")
open_store = partial(MemoryStore.embedded, DATA, embedder=HashingEmbedder())
app = FastAPI(lifespan=memory_lifespan(open_store, orders))
add_error_answers(app)
app.include_router(health_router())


class NewOrder(BaseModel):
    item: str
    pieces: int = 1


@app.post("/customers/{customer}/orders", status_code=201)
async def place(customer: str, new: NewOrder, session: Session, memory: MemoryHere) -> int:
    scope, text = DESK.child("customer", customer), f"{customer} ordered {new.pieces} x {new.item}"
    order = Order(customer=customer, item=new.item, pieces=new.pieces)
    session.add(order)
    await session.flush()
    await memory.remember(MemoryRecord(f"order-{order.id}", scope, "episodic", text))
    # Order and memory, or neither: whatever fails before this line leaves nothing behind.
    await session.commit()
    return order.id


@app.get("/customers/{customer}/prompt")
async def prompt(customer: str, question: str, memory: MemoryStoreDep) -> dict[str, str | list[str]]:
    recalled = await memory.recall(DESK.child("customer", customer), question, limit=5, max_chars=2000)
    return {"prompt": recalled.render(), "memories": [memory.record_id for memory in recalled.memories]}


@app.post("/customers/{customer}/used")
async def used(customer: str, memories: list[str], memory: MemoryStoreDep) -> int:
    return await memory.reinforce(DESK.child("customer", customer), memories)
