"""The env.py of a host; what varies between the tests comes in by config.attributes.

url: an address of SQLAlchemy's, its dialect asynchronous or not. options: keyword arguments for the engine.
schemas: whether Alembic looks at every schema. hooks: whether the host uses ours. inside: whether it runs our
migrations in its own transaction. configured: more keyword arguments for context.configure.
"""

import asyncio
import sys
from pathlib import Path

from alembic import context
from sqlalchemy import Connection, NullPool, create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from symfonic_pg.contrib.alembic import include_name, include_object, upgrade

sys.path.insert(0, str(Path(__file__).parent))
import models

sys.path.pop(0)
given = context.config.attributes


def run(connection: Connection) -> None:
    hooks = (
        {"include_object": include_object, "include_name": include_name} if given.get("hooks", True) else {}
    )
    context.configure(
        connection=connection,
        target_metadata=models.Base.metadata,
        include_schemas=given.get("schemas", True),
        **{**hooks, **given.get("configured", {})},
    )
    with context.begin_transaction():
        if given.get("inside"):
            upgrade(connection)
        context.run_migrations()


async def run_async() -> None:
    engine = create_async_engine(given["url"], poolclass=NullPool, **given.get("options", {}))
    async with engine.connect() as connection:
        await connection.run_sync(run)


def run_sync() -> None:
    engine = create_engine(given["url"], poolclass=NullPool, **given.get("options", {}))
    with engine.connect() as connection:
        run(connection)


if context.is_offline_mode():
    context.configure(dialect_name="postgresql", literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()
elif "+asyncpg" in given["url"]:
    asyncio.run(run_async())
else:
    run_sync()
