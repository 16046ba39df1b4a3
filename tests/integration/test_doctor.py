"""The doctor names what is wrong, and its fix, followed to the letter, mends it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from symfonic_pg.postgres.doctor import Finding, examine, expected_indexes, judge_model, judge_revision
from symfonic_pg.postgres.migrations import head_revision, migrate
from tests.conftest import with_database
from tests.migration.catalogue import catalogue

ROLE = "symfonic_pg_test_reader"
INVALIDATE = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'symfonic.{}'::regclass"
MODEL = "INSERT INTO symfonic.models (name, dimension) VALUES ('hashing', 8)"


def run(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            for one in filter(str.strip, statement.split(";")):
                connection.execute(one)


async def findings(dsn: str, name: str, **options: str) -> list[Finding]:
    return [finding for finding in await examine(dsn, **options) if finding.name == name]


async def mended(dsn: str, name: str, **options: str) -> bool:
    """Follow the fixes of all findings of that name; whether the next look is content."""
    for finding in await findings(dsn, name, **options):
        assert finding.fix
        run(dsn, finding.fix)
    return [finding.status for finding in await findings(dsn, name, **options)] == ["ok"]


@pytest.fixture
def role(database: str) -> Iterator[str]:
    run(database, f"DROP ROLE IF EXISTS {ROLE}", f"CREATE ROLE {ROLE}")
    yield ROLE
    run(database, f"DROP OWNED BY {ROLE}", f"DROP ROLE {ROLE}")


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_a_fresh_database_is_well_but_for_the_superuser(database: str, driver: str) -> None:
    found = await examine(database.replace("postgresql:", f"postgresql+{driver}:"))
    assert [(finding.name, finding.status) for finding in found] == [
        ("server", "ok"),
        ("encoding", "ok"),
        ("extension", "ok"),
        ("revision", "ok"),
        ("search_path", "ok"),
        ("indexes", "ok"),
        ("models", "ok"),
        ("role", "warning"),
        ("rights", "ok"),
    ]
    assert all(finding.detail for finding in found)
    assert "PostgreSQL 1" in found[0].detail
    assert "pgvector 0." in found[2].detail
    assert "in the schema public" in found[2].detail
    assert head_revision() in found[3].detail


async def test_a_server_that_does_not_answer_is_the_only_finding() -> None:
    [finding] = await examine("postgresql://nobody@127.0.0.1:1/none", timeout=2.0)
    assert (finding.name, finding.status) == ("server", "failure")
    assert finding.fix


async def test_an_empty_database_lacks_extension_and_schema(empty_database: str) -> None:
    found = {finding.name: finding for finding in await examine(empty_database)}
    assert found["extension"].status == found["revision"].status == "failure"
    assert found["extension"].fix == "CREATE EXTENSION vector;"
    assert found["revision"].fix == "symfonic-pg migrate"
    assert "indexes" not in found
    assert await mended(empty_database, "extension")


async def test_another_schema_is_looked_at_by_name(empty_database: str) -> None:
    migrate(empty_database, schema="brain")
    assert {finding.status for finding in await examine(empty_database, schema="brain")} == {"ok", "warning"}
    [finding] = await findings(empty_database, "revision")
    assert finding.status == "failure"


async def test_a_database_in_another_encoding(server: str, database: str) -> None:
    name = "symfonic_pg_test_latin"
    encoded = f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"
    run(server, f"DROP DATABASE IF EXISTS {name}", encoded)
    try:
        [finding] = await findings(with_database(server, name), "encoding")
    finally:
        run(server, f"DROP DATABASE {name} WITH (FORCE)")
    assert finding.status == "failure"
    assert "LATIN1" in finding.detail


async def test_the_extension_moved_away(database: str) -> None:
    run(database, "CREATE SCHEMA extensions", "ALTER EXTENSION vector SET SCHEMA extensions")
    [finding] = await findings(database, "search_path")
    assert finding.status == "failure"
    assert "search" in finding.detail
    assert await mended(database, "search_path")


async def test_a_missing_index_comes_back_as_it_was(database: str) -> None:
    before = catalogue(database)
    run(database, "DROP INDEX symfonic.memories_recent")
    [finding] = await findings(database, "indexes")
    assert finding.status == "failure"
    assert "memories_recent is missing" in finding.detail
    assert await mended(database, "indexes")
    assert catalogue(database) == before


async def test_an_invalid_index(database: str) -> None:
    run(database, INVALIDATE.format("memories_salient"))
    [finding] = await findings(database, "indexes")
    assert "memories_salient is invalid" in finding.detail
    assert await mended(database, "indexes")


def test_every_index_that_the_schema_makes_is_expected(database: str) -> None:
    with psycopg.connect(database) as connection:
        made = connection.execute(
            "SELECT indexname FROM pg_indexes i WHERE schemaname = 'symfonic'"
            " AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conname = i.indexname)"
        ).fetchall()
    assert set(expected_indexes("symfonic")) == {name for (name,) in made}
    assert made


async def test_a_model_of_few_vectors_needs_no_index_yet(database: str) -> None:
    run(database, MODEL)
    [finding] = await findings(database, "models")
    assert finding.status == "ok"
    assert "too few to need an index yet" in finding.detail


@pytest.fixture
def any_model_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every model had more vectors than are compared one by one."""
    monkeypatch.setattr("symfonic_pg.postgres.doctor._FEW_VECTORS", -1)


@pytest.mark.usefixtures("any_model_is_large")
async def test_a_model_without_its_indexes(database: str) -> None:
    run(database, MODEL)
    [finding] = await findings(database, "models")
    assert finding.status == "warning"
    assert "hashing: number 1, 8 dimensions, 0 vectors" in finding.detail
    assert await mended(database, "models")


@pytest.mark.usefixtures("any_model_is_large")
async def test_an_invalid_index_of_a_model(database: str) -> None:
    run(database, MODEL)
    assert await mended(database, "models")
    run(database, INVALIDATE.format("embeddings_hnsw_1"))
    [finding] = await findings(database, "models")
    assert finding.status == "warning"
    assert await mended(database, "indexes")
    [finding] = await findings(database, "models")
    assert finding.status == "ok"


def test_wide_vectors_need_no_covering_index() -> None:
    finding = judge_model("wide", 3, 3072, 30_000, ["embeddings_hnsw_3"], schema="symfonic", vectors="public")
    assert finding.status == "ok"
    assert "more than 20,000 vectors" in finding.detail


@pytest.mark.parametrize(
    ("found", "status", "fix"),
    [
        ("0003", "ok", ""),
        ("0002", "failure", "symfonic-pg migrate"),
        ("0004", "failure", "install the symfonic-pg that made it"),
        (None, "failure", "symfonic-pg migrate"),
    ],
)
def test_revisions_are_compared(found: str | None, status: str, fix: str) -> None:
    finding = judge_revision(found, "0003", "symfonic")
    assert (finding.status, finding.fix) == (status, fix)


async def test_a_role_without_rights_gets_them_by_following_the_fixes(database: str, role: str) -> None:
    found = await findings(database, "rights", role=role)
    assert [finding.status for finding in found] == ["failure", "failure", "warning", "warning"]
    assert await mended(database, "rights", role=role)
    assert [finding.status for finding in await findings(database, "role", role=role)] == ["ok"]
    with psycopg.connect(database) as connection:
        connection.execute(f"SET ROLE {role}")
        connection.execute("DELETE FROM symfonic.memories")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM symfonic.symfonic_pg_version")


async def test_a_reader_is_only_warned_about(database: str, role: str) -> None:
    for finding in await findings(database, "rights", role=role):
        if finding.status == "failure":
            run(database, finding.fix)
    tables, sequences = await findings(database, "rights", role=role)
    assert (tables.status, sequences.status) == ("warning", "warning")
    assert "it can read, not write" in tables.detail
    assert "it cannot load in bulk" in sequences.detail


async def test_functions_that_nobody_may_call(database: str, role: str) -> None:
    run(database, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA symfonic FROM PUBLIC")
    assert any("lacks EXECUTE" in finding.detail for finding in await findings(database, "rights", role=role))
    assert await mended(database, "rights", role=role)


async def test_a_runtime_role_must_not_be_a_superuser(database: str, role: str) -> None:
    run(database, f"ALTER ROLE {role} SUPERUSER")
    [finding] = await findings(database, "role", role=role)
    assert finding.status == "failure"
    assert await mended(database, "role", role=role)


async def test_a_role_that_does_not_exist(database: str) -> None:
    [finding] = await findings(database, "role", role='no one\'s "role"')
    assert finding.status == "failure"
    assert finding.fix.startswith('CREATE ROLE "no one\'s ""role"""')
