"""symfonic_pg.contrib.fastapi on a real server: lifespan, dependency, answers, health."""

# FastAPI reads annotations as objects: those of local functions must not be postponed.

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

import httpx
import psycopg
import pytest
from fastapi import Depends, FastAPI, WebSocket
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from symfonic_pg.contrib.fastapi import (
    MemoryStoreDep,
    add_error_answers,
    health_router,
    memory_lifespan,
    memory_using,
)
from symfonic_pg.memory import (
    MemoryContractError,
    MemoryRecord,
    MemoryScope,
    MemoryUnavailable,
    SymfonicError,
)
from symfonic_pg.postgres.embedded import EmbeddedServer
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.store import MemoryStore
from tests.integration.executor_kinds import engine_for

ORG = MemoryScope.parse("org:acme")
ANA = ORG.child("user", "ana")
SECRET = "a secret lamp"


@asynccontextmanager
async def served(app: FastAPI, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the running application; its errors that no handler answers become 500."""
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://app", **options
        ) as client,
    ):
        yield client


def application(open_store: Callable[[], Any], **options: Any) -> FastAPI:
    app = FastAPI(lifespan=memory_lifespan(open_store, **options))
    add_error_answers(app, retry_after=7)
    app.include_router(health_router())

    @app.post("/memories")
    async def remember(memory: dict[str, Any], store: MemoryStoreDep) -> int:
        return (await store.remember(MemoryRecord(**memory))).total

    @app.get("/prompt")
    async def prompt(scope: str, cue: str, store: MemoryStoreDep, limit: int = 10) -> str:
        return (await store.recall(scope, cue, limit=limit)).render()

    return app


def note(**changes: Any) -> dict[str, Any]:
    return {"record_id": "lamp", "scope": str(ANA), "layer": "semantic", "text": SECRET, **changes}


async def test_a_memory_goes_in_and_comes_out_as_a_prompt(database: str) -> None:
    async with served(application(partial(MemoryStore.connect, database))) as client:
        assert (await client.post("/memories", json=note())).json() == 1
        answer = await client.get("/prompt", params={"scope": str(ANA), "cue": "lamp"})
        assert answer.json() == f"[semantic] {SECRET}"


async def test_the_store_lives_as_long_as_the_application(database: str) -> None:
    app = application(partial(MemoryStore.connect, database))
    stores = []
    for _ in range(2):
        async with served(app) as client:
            assert (await client.get("/health/memory")).status_code == 200
            stores.append(app.state.memory_store)
        assert not hasattr(app.state, "memory_store")
        with pytest.raises(MemoryUnavailable, match="closed"):
            await stores[-1].count(ORG)
    assert stores[0] is not stores[1]


async def test_the_hosts_own_lifespan_runs_inside_and_keeps_its_state(database: str) -> None:
    seen: list[object] = []

    @asynccontextmanager
    async def host(app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        await app.state.memory_store.check()
        yield {"tariff": 7}
        await app.state.memory_store.check()
        seen.append("left")

    app = FastAPI(lifespan=memory_lifespan(partial(MemoryStore.connect, database), host))
    async with app.router.lifespan_context(app) as state:
        assert state["tariff"] == 7
        assert state["memory_store"] is app.state.memory_store
    assert seen == ["left"]


async def test_a_failing_host_closes_the_store(database: str) -> None:
    stores = []

    @asynccontextmanager
    async def host(app: FastAPI) -> AsyncIterator[None]:
        stores.append(app.state.memory_store)
        raise OSError("no port")
        yield

    app = FastAPI(lifespan=memory_lifespan(partial(MemoryStore.connect, database), host))
    with pytest.raises(OSError, match="no port"):
        async with app.router.lifespan_context(app):
            pass
    with pytest.raises(MemoryUnavailable, match="closed"):
        await stores[0].count(ORG)


async def test_a_mounted_application_gets_the_store_from_the_lifespans_state(database: str) -> None:
    inner, outer = FastAPI(), FastAPI(lifespan=memory_lifespan(partial(MemoryStore.connect, database)))
    outer.mount("/inner", inner)

    @inner.get("/count")
    async def count(store: MemoryStoreDep) -> int:
        return await store.count(ORG)

    async with outer.router.lifespan_context(outer) as state:

        async def as_a_server_does(scope: Any, receive: Any, send: Any) -> None:
            await outer({**scope, "state": dict(state)}, receive, send)

        transport = httpx.ASGITransport(as_a_server_does)
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            assert (await client.get("/inner/count")).json() == 0


async def test_without_a_store_the_error_says_what_is_missing() -> None:
    app = FastAPI()
    app.include_router(health_router())
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        with pytest.raises(SymfonicError, match="memory_lifespan"):
            await client.get("/health/memory")


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_a_memory_lives_and_dies_with_the_hosts_transaction(database: str, driver: str) -> None:
    engine = engine_for(database, driver)
    sessions = async_sessionmaker(engine)

    async def session() -> AsyncIterator[AsyncSession]:
        async with sessions() as opened:
            yield opened

    app = application(partial(MemoryStore.connect, database, driver=driver))

    @app.post("/orders")
    async def order(
        keep: bool,
        session: Annotated[AsyncSession, Depends(session)],
        store: Annotated[MemoryStore, Depends(memory_using(session))],
    ) -> int:
        await store.remember(MemoryRecord(f"order-{keep}", ANA, "episodic", "Ana ordered a lamp"))
        await (session.commit() if keep else session.rollback())
        return await app.state.memory_store.count(ANA)

    async with served(app) as client:
        assert (await client.post("/orders", params={"keep": False})).json() == 0
        assert (await client.post("/orders", params={"keep": True})).json() == 1
    await engine.dispose()


@pytest.mark.parametrize(
    ("memory", "place", "rule"),
    [
        (note(text=f"{SECRET}\0"), ["text"], "without NUL"),
        (note(record_id="x" * 256), ["record_id"], "1 to 255"),
        (note(salience=1.5), ["salience"], "from 0 to 1"),
        (note(scope="org:acme/user"), ["scope"], "kind:id"),
        (note(metadata={SECRET: "\0"}), ["metadata"], "NUL"),
        (note(layer="working"), ["layer", 0], "append_turns"),
        (note(created_at=SECRET), ["created_at"], "datetime"),
    ],
)
async def test_a_broken_contract_is_422_with_field_and_rule_alone(
    database: str, memory: dict[str, Any], place: list[Any], rule: str
) -> None:
    async with served(application(partial(MemoryStore.connect, database))) as client:
        answer = await client.post("/memories", json=memory)
    assert answer.status_code == 422
    [fault] = answer.json()["detail"]
    assert fault["type"] == "memory_contract"
    assert fault["loc"] == place
    assert rule in fault["msg"]
    for private in (SECRET, "acme", "xxx", "1.5"):
        assert private not in answer.text


async def test_a_record_of_another_scope_stays_hidden(database: str) -> None:
    async with served(application(partial(MemoryStore.connect, database))) as client:
        await client.post("/memories", json=note())
        answer = await client.post("/memories", json=note(scope="org:acme/user:eve"))
    assert answer.status_code == 422
    for private in (SECRET, "acme", "ana", "eve"):
        assert private not in answer.text


async def test_a_bare_contract_error_says_nothing_of_its_message() -> None:
    app = FastAPI()
    add_error_answers(app)

    @app.get("/")
    async def fail() -> None:
        raise MemoryContractError(SECRET)

    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        answer = await client.get("/")
    assert (answer.status_code, SECRET in answer.text) == (422, False)


async def test_a_server_that_goes_away_is_503_until_it_is_back(
    own_server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    dsn = own_server.dsn
    migrate(dsn)
    async with served(application(partial(MemoryStore.connect, dsn, timeout=5.0))) as client:
        assert (await client.post("/memories", json=note())).status_code == 200
        assert (await client.get("/health/memory")).json() == {"status": "ok"}
        own_server.stop()
        asked = {"scope": str(ANA), "cue": SECRET}
        with caplog.at_level(logging.WARNING, logger="symfonic_pg.contrib"):
            for answer in (
                await client.get("/prompt", params=asked),
                await client.post("/memories", json=note()),
                await client.get("/health/memory"),
            ):
                assert answer.status_code == 503
                assert int(answer.headers["Retry-After"]) > 0
                for private in (SECRET, "acme", "postgres", "/tmp", "run"):
                    assert private not in answer.text
        assert len(caplog.records) == 3
        assert SECRET not in caplog.text
        own_server.start()
        assert (await client.get("/prompt", params=asked)).json() == f"[semantic] {SECRET}"
        assert (await client.get("/health/memory")).status_code == 200


async def test_a_password_never_leaves(database: str) -> None:
    nowhere = "postgresql://ana:hunter2@127.0.0.1:1/secrets"
    async with served(application(partial(MemoryStore.connect, nowhere, timeout=2.0))) as client:
        for path in ("/health/memory", f"/prompt?scope={ANA}&cue=lamp"):
            answer = await client.get(path)
            assert answer.status_code == 503
            for private in ("hunter2", "127.0.0.1", "secrets", "ana"):
                assert private not in answer.text
            assert answer.headers["Retry-After"] == ("5" if "health" in path else "7")


async def test_health_fails_where_writes_would_and_reads_would_not(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET default_transaction_read_only = on")
    async with served(application(partial(MemoryStore.connect, database))) as client:
        assert (await client.get("/prompt", params={"scope": "org:acme", "cue": "lamp"})).status_code == 200
        answer = await client.get("/health/memory")
        assert (answer.status_code, answer.json()) == (503, {"status": "unavailable"})
        assert (await client.post("/memories", json=note())).status_code == 503


async def test_health_fails_before_the_migration_and_after_it_does_not(empty_database: str) -> None:
    async with served(application(partial(MemoryStore.connect, empty_database))) as client:
        assert (await client.get("/health/memory")).status_code == 503
        await asyncio.to_thread(migrate, empty_database)
        assert (await client.get("/health/memory")).status_code == 200


async def test_many_requests_share_the_pool_and_leave_no_connection_behind(database: str) -> None:
    app = application(partial(MemoryStore.connect, database, pool_max=4))
    async with served(app) as client:
        await client.post("/memories", json=note())
        asked = {"scope": str(ANA), "cue": "lamp"}
        answers = await asyncio.gather(*(client.get("/prompt", params=asked) for _ in range(200)))
        assert {answer.status_code for answer in answers} == {200}
        with psycopg.connect(database) as connection:
            states = connection.execute(
                "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            ).fetchall()
    assert len(states) <= 4
    assert {state for (state,) in states} == {"idle"}


class Wire:
    """One websocket, as an ASGI server would hold it."""

    def __init__(self, path: str) -> None:
        self.scope = {
            "type": "websocket", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [],
            "subprotocols": [], "root_path": "", "scheme": "ws", "asgi": {"version": "3.0"}, "state": {},
        }  # fmt: skip
        self.sent: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)


async def test_a_websocket_has_the_store_and_is_closed_with_a_reason(database: str) -> None:
    app = application(partial(MemoryStore.connect, database))

    @app.websocket("/counts")
    async def counts(websocket: WebSocket, store: MemoryStoreDep) -> None:
        await websocket.accept()
        await websocket.send_text(str(await store.count(ORG)))
        await store.recall(ORG, "\0")

    @app.websocket("/away")
    async def away(websocket: WebSocket, store: MemoryStoreDep) -> None:
        await websocket.accept()
        raise MemoryUnavailable(SECRET)

    async with app.router.lifespan_context(app):
        wire = Wire("/counts")
        await app(wire.scope, wire.receive, wire.send)
        assert [message["type"] for message in wire.sent] == [
            "websocket.accept",
            "websocket.send",
            "websocket.close",
        ]
        assert (wire.sent[1]["text"], wire.sent[2]["code"]) == ("0", 1008)
        wire = Wire("/away")
        await app(wire.scope, wire.receive, wire.send)
        assert wire.sent[-1]["code"] == 1013
        assert SECRET not in str(wire.sent)
