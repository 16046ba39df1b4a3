"""The MetaData for queries: it is what the migrations made, and nobody else's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import func, select, text
from sqlalchemy.orm import DeclarativeBase

from symfonic_pg import MemoryRecord, MemoryScope
from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import MemoryContractError
from symfonic_pg.postgres.migration_scripts import VERSION_TABLE
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.postgres.tables import tables
from symfonic_pg.sync import MemoryStore
from tests.integration.blocking_kinds import blocking_engine
from tests.migration.catalogue import catalogue

ROOT = Path(__file__).parents[2]
# Of what a catalogue holds, what the MetaData says; checks are left out, and what rides along in an index.
SAID = re.compile(r"(column|constraint|index) \|")
UNSAID = re.compile(r"CHECK \(|column \| (memory_list|scope_tree) ")
ALONG = re.compile(r" INCLUDE \((?!term_total\))[^)]*\)")


def said(dsn: str, schema: str) -> list[str]:
    lines = [line for line in catalogue(dsn, schema) if SAID.match(line) and not UNSAID.search(line)]
    assert len(lines) > 100
    return sorted(ALONG.sub("", line.replace(f"{schema}.", "")) for line in lines)


@pytest.mark.parametrize("schema", ["symfonic", "Brain"])
def test_alembic_finds_no_difference_to_the_migrated_schema(database: str, schema: str) -> None:
    if schema != "symfonic":
        migrate(database, schema=schema)
    engine = blocking_engine(database)
    options = {
        "include_schemas": True,
        "compare_type": True,
        "compare_server_default": True,
        "include_name": lambda name, kind, _: name == schema if kind == "schema" else name != VERSION_TABLE,
    }
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, tables(schema)) == []
    engine.dispose()


def test_columns_keys_and_indexes_are_those_of_the_migrations(database: str) -> None:
    engine = blocking_engine(database)
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA copied"))
        tables("copied").create_all(connection)
    engine.dispose()
    assert said(database, "copied") == said(database, "symfonic")


def test_a_query_of_ones_own(database: str) -> None:
    scope = MemoryScope.parse("org:acme/user:u1")
    embedder = HashingEmbedder()
    with MemoryStore.connect(database, embedder=embedder) as store:
        store.remember(
            [
                MemoryRecord(f"m{number}", scope, "semantic", "blue paper", 0.5, metadata={"n": number})
                for number in range(3)
            ]
        )
    found = tables().tables
    memories, embeddings, scopes = (
        found[f"symfonic.{name}"] for name in ("memories", "embeddings", "scopes")
    )
    engine = blocking_engine(database)
    with engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(memories.join(embeddings))) == 3
        joined = select(scopes.c.level_id, memories.c.metadata["n"], embeddings.c.embedding).select_from(
            memories.join(scopes).join(embeddings, embeddings.c.memory_id == memories.c.memory_id)
        )
        rows = connection.execute(joined.order_by(memories.c.record_id)).all()
        assert [(level, n) for level, n, _ in rows] == [("u1", 0), ("u1", 1), ("u1", 2)]
        vector = [
            float(value) for value in (rows[0][2] if isinstance(rows[0][2], list) else rows[0][2].to_list())
        ]
        nearest = select(embeddings.c.embedding.cosine_distance(vector)).limit(1)
        assert connection.scalar(nearest) == pytest.approx(0, abs=1e-3)
    engine.dispose()


def test_nothing_is_registered_on_a_hosts_base() -> None:
    class Base(DeclarativeBase):
        pass

    assert tables() is tables()
    assert tables() is not tables("other")
    assert set(Base.metadata.tables) == set()
    assert not {table.metadata for table in tables().tables.values()} - {tables()}
    assert all(name.startswith("symfonic.") for name in tables().tables)


def test_a_schema_that_is_no_identifier_is_refused() -> None:
    with pytest.raises(MemoryContractError, match="schema"):
        tables("a.b")


def test_the_store_itself_needs_no_sqlalchemy() -> None:
    script = "import sys; import symfonic_pg.sync, symfonic_pg.store; print('sqlalchemy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], cwd=ROOT, text=True) == "False\n"
