"""symfonic-pg index: the vector indexes of every model, or of those named."""

from __future__ import annotations

import psycopg
import pytest

from .conftest import Command, Memories, memory


@pytest.fixture
def loaded(symfonic: Command, memories: Memories) -> Command:
    """The command on a database with vectors of two models."""
    for model, dimension in (("small", 3), ("large", 2000)):
        line = memory(f"of-{model}", embedding=[1.0] * dimension)
        result = symfonic("remember", str(memories(line)), "--no-embed", "--model", model)
        assert result.exit_code == 0, result.output
    return symfonic


def indexes(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE i.indrelid = 'symfonic.embeddings'::regclass AND i.indisvalid AND c.relname ~ '_[0-9]+$'"
            " ORDER BY 1"
        ).fetchall()
        return [row[0] for row in rows]


def test_every_model_gets_its_indexes(loaded: Command, database: str) -> None:
    result = loaded("index")
    assert result.exit_code == 0, result.output
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["small", "large"]
    assert indexes(database) == ["embeddings_hnsw_1", "embeddings_hnsw_2", "embeddings_level_1"]
    assert loaded("index").exit_code == 0


def test_the_named_model_alone(loaded: Command, database: str) -> None:
    assert loaded("index", "large").exit_code == 0
    assert indexes(database) == ["embeddings_hnsw_2"]


def test_a_model_nobody_registered(loaded: Command) -> None:
    result = loaded("index", "unknown")
    assert result.exit_code == 2
    assert "unknown" in result.stderr


def test_no_model_at_all(symfonic: Command) -> None:
    result = symfonic("index")
    assert (result.exit_code, result.stdout) == (0, "no embedding model is registered yet\n")


def test_an_index_of_a_build_that_was_interrupted_is_no_success(loaded: Command, database: str) -> None:
    loaded("index", "small")
    with psycopg.connect(database) as connection:
        connection.execute(
            "UPDATE pg_index SET indisvalid = false"
            " WHERE indexrelid = 'symfonic.embeddings_hnsw_1'::regclass"
        )
    result = loaded("index")
    assert result.exit_code == 1
    assert "embeddings_hnsw_1 is invalid" in result.stderr
    assert "REINDEX INDEX CONCURRENTLY" in result.stderr
