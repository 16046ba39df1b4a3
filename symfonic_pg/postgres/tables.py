"""The tables as SQLAlchemy sees them, for people who want to query them."""

from __future__ import annotations

from functools import cache
from typing import Any

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from symfonic_pg.postgres.statements import quoted_schema


@cache
def tables(schema: str = "symfonic") -> MetaData:
    """A MetaData of its own with every table of a store: `tables().tables["symfonic.memories"]`.

    It says what is there, for queries; migrating is what creates it. Checks and triggers are not part of it,
    and nothing is registered on anybody's declarative base. Reading a table knows nothing of scopes: which
    rows a scope may see is the caller's to ask for. Needs SQLAlchemy and pgvector. MemoryContractError for a
    schema that is no plain identifier.
    """
    quoted_schema(schema)
    metadata = MetaData(schema=schema)
    for define in (
        _scopes,
        _memories,
        _postings,
        _models,
        _embeddings,
        _leases,
        _usage,
        _associations,
        _turns,
    ):
        define(metadata)
    return metadata


def _scopes(metadata: MetaData) -> None:
    Table(
        "scopes",
        metadata,
        _name("tenant_id"),
        Column("scope_id", BigInteger, Identity(always=True), nullable=False),
        Column("parent_id", BigInteger),
        _name("kind"),
        _name("level_id"),
        Column("depth", SmallInteger, nullable=False),
        Column("languages", ARRAY(Text(collation="C")), nullable=False, server_default=text("'{}'")),
        _instant("created_at", nullable=False, server_default=func.now()),
        PrimaryKeyConstraint("tenant_id", "scope_id"),
        UniqueConstraint(
            "tenant_id",
            "parent_id",
            "kind",
            "level_id",
            name="scopes_path",
            postgresql_nulls_not_distinct=True,
        ),
        _scope("scopes_parent", metadata, "parent_id"),
    )
    c = metadata.tables[f"{metadata.schema}.scopes"].c
    Index("scopes_tenants", c.tenant_id, postgresql_where=c.parent_id.is_(None))


def _memories(metadata: MetaData) -> None:
    table = Table(
        "memories",
        metadata,
        _name("tenant_id"),
        Column("memory_id", BigInteger, Identity(always=False), nullable=False),
        Column("scope_id", BigInteger, nullable=False),
        _name("layer"),
        _name("record_id"),
        Column("text", Text, nullable=False),
        Column("salience", Double),
        _name("kind", server_default=text("''")),
        _instant("created_at", nullable=False),
        _instant("updated_at", nullable=False),
        _instant("valid_from"),
        _instant("valid_until"),
        _instant("expires_at"),
        Column("access_count", BigInteger, nullable=False, server_default=text("0")),
        _instant("last_accessed_at"),
        _name("language", nullable=True),
        Column("metadata", JSONB, nullable=False, server_default=text("'{}'")),
        Column("content_hash", LargeBinary, nullable=False),
        Column("terms", ARRAY(Text(collation="C")), nullable=False),
        Column("term_counts", ARRAY(Integer), nullable=False),
        Column("term_total", Integer, nullable=False),
        PrimaryKeyConstraint("tenant_id", "memory_id"),
        UniqueConstraint("tenant_id", "record_id", name="memories_record"),
        _scope("memories_scope", metadata),
    )
    c = table.c
    level, newest = (c.tenant_id, c.scope_id, c.layer), (c.updated_at.desc(), c.record_id)
    Index("memories_recent", *level, *newest, postgresql_include=["term_total"])
    Index("memories_salient", *level, c.salience.desc(), *newest, postgresql_where=c.salience.is_not(None))
    Index(
        "memories_profile",
        *level,
        c.salience.desc().nulls_last(),
        *newest,
        postgresql_where=c.kind == text("'profile'"),
    )


def _postings(metadata: MetaData) -> None:
    Table(
        "postings",
        metadata,
        _name("tenant_id"),
        Column("scope_id", BigInteger, nullable=False),
        _name("term"),
        Column("memory_id", BigInteger, nullable=False),
        Column("term_count", Integer, nullable=False),
        Column("term_total", Integer, nullable=False),
        PrimaryKeyConstraint("tenant_id", "scope_id", "term", "memory_id"),
    )


def _models(metadata: MetaData) -> None:
    Table(
        "models",
        metadata,
        Column("model_id", SmallInteger, Identity(always=True), primary_key=True),
        _name("name"),
        Column("dimension", Integer, nullable=False),
        Column("baseline", Double, nullable=False, server_default=text("0")),
        _instant("created_at", nullable=False, server_default=func.now()),
        UniqueConstraint("name"),
    )


def _embeddings(metadata: MetaData) -> None:
    table = Table(
        "embeddings",
        metadata,
        _name("tenant_id"),
        Column("memory_id", BigInteger, nullable=False),
        Column("model_id", SmallInteger, nullable=False),
        Column("scope_id", BigInteger, nullable=False),
        _name("layer"),
        Column("embedding", HALFVEC(), nullable=False),
        Column("content_hash", LargeBinary, nullable=False),
        _name("text_version", server_default=text("''")),
        PrimaryKeyConstraint("tenant_id", "memory_id", "model_id"),
        _memory("embeddings_memory", metadata),
    )
    c = table.c
    Index("embeddings_level", c.tenant_id, c.scope_id, c.model_id, c.layer)


def _leases(metadata: MetaData) -> None:
    Table(
        "embedding_leases",
        metadata,
        _name("tenant_id"),
        Column("memory_id", BigInteger, nullable=False),
        Column("model_id", SmallInteger, nullable=False),
        Column("content_hash", LargeBinary, nullable=False),
        _name("text_version"),
        _name("holder"),
        _instant("leased_at", nullable=False),
        _instant("leased_until", nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("error", Text),
        Column("verdict", Text),
        PrimaryKeyConstraint("tenant_id", "memory_id", "model_id"),
        _memory("embedding_leases_memory", metadata),
    )


def _usage(metadata: MetaData) -> None:
    table = Table(
        "usage",
        metadata,
        _name("tenant_id"),
        Column("memory_id", BigInteger, nullable=False),
        Column("scope_id", BigInteger, nullable=False),
        Column("access_count", BigInteger, nullable=False),
        _instant("last_accessed_at", nullable=False),
        PrimaryKeyConstraint("tenant_id", "memory_id", "scope_id"),
        _memory("usage_memory", metadata),
        _scope("usage_at", metadata),
    )
    Index("usage_scope", table.c.tenant_id, table.c.scope_id)


def _associations(metadata: MetaData) -> None:
    table = Table(
        "associations",
        metadata,
        _name("tenant_id"),
        Column("source_id", BigInteger, nullable=False),
        Column("scope_id", BigInteger, nullable=False),
        Column("target_id", BigInteger, nullable=False),
        _name("relationship"),
        Column("weight", Double, nullable=False),
        PrimaryKeyConstraint("tenant_id", "source_id", "scope_id", "target_id", "relationship"),
        _memory("associations_source", metadata, "source_id"),
        _memory("associations_target", metadata, "target_id"),
        _scope("associations_scope", metadata),
    )
    c = table.c
    source = (c.tenant_id, c.source_id, c.scope_id)
    Index("associations_strongest", *source, c.weight.desc(), c.target_id, c.relationship)
    Index("associations_backward", c.tenant_id, c.target_id, c.scope_id, c.source_id)
    Index("associations_at", c.tenant_id, c.scope_id)


def _turns(metadata: MetaData) -> None:
    table = Table(
        "turns",
        metadata,
        _name("tenant_id"),
        Column("scope_id", BigInteger, nullable=False),
        _name("turn_id"),
        Column("turn", BigInteger, nullable=False),
        Column("arrival", BigInteger, Identity(always=True), nullable=False),
        Column("speaker", Text, nullable=False),
        Column("text", Text, nullable=False),
        _instant("created_at", nullable=False, server_default=func.now()),
        PrimaryKeyConstraint("tenant_id", "scope_id", "turn_id"),
        _scope("turns_scope", metadata),
    )
    c = table.c
    Index("turns_latest", c.tenant_id, c.scope_id, c.turn.desc(), c.arrival.desc())


def _name(name: str, *, nullable: bool = False, **options: Any) -> Column[str]:
    """A text that is compared code point by code point."""
    return Column(name, Text(collation="C"), nullable=nullable, **options)


def _instant(name: str, **options: Any) -> Column[Any]:
    return Column(name, DateTime(timezone=True), **options)


def _scope(name: str, metadata: MetaData, column: str = "scope_id") -> ForeignKeyConstraint:
    return _within_tenant(name, metadata, column, "scopes.scope_id")


def _memory(name: str, metadata: MetaData, column: str = "memory_id") -> ForeignKeyConstraint:
    return _within_tenant(name, metadata, column, "memories.memory_id")


def _within_tenant(name: str, metadata: MetaData, column: str, target: str) -> ForeignKeyConstraint:
    table = target.partition(".")[0]
    referred = [f"{metadata.schema}.{table}.tenant_id", f"{metadata.schema}.{target}"]
    return ForeignKeyConstraint(["tenant_id", column], referred, name=name, ondelete="CASCADE")
