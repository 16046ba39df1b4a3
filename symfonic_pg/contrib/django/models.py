"""What people look at: scopes and memories, read-only, over views of the store's schema.

The store itself never comes by here. Reads go to the database of SYMFONIC_PG_DATABASE unless `using` names
another.
"""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models

from symfonic_pg.contrib.django.configuration import configured
from symfonic_pg.contrib.django.fields import RecordKeyField, ScopeField
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS
from symfonic_pg.postgres.statements import quoted_schema

# The counts of the views go no further.
COUNTED = 1000


def view(name: str) -> str:
    """The quoted name of a view; Django takes a table's name that has its quotes already as it is."""
    return f'{quoted_schema(configured().schema)}."{name}"'


class StoreManager(models.Manager):
    """Reads from the database that holds the store."""

    def get_queryset(self) -> Any:
        """All rows there, or in the database that `using` names."""
        queryset = super().get_queryset()
        return queryset if self._db else queryset.using(configured().database)


class ReadOnlyModel(models.Model):
    """A row of a view."""

    objects = StoreManager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Nothing is written here: memories are written through memory_store()."""
        raise TypeError(f"{type(self).__name__} is read-only: write through memory_store()")

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Nothing is deleted here: memories are deleted through memory_store()."""
        raise TypeError(f"{type(self).__name__} is read-only: delete through memory_store()")


class Scope(ReadOnlyModel):
    """A level that was ever written to. `children` and `memories`, those exactly here, count to 1,001."""

    path = ScopeField(primary_key=True)
    tenant = models.TextField(db_column="tenant_id")
    number = models.BigIntegerField(db_column="scope_id")
    parent_number = models.BigIntegerField(db_column="parent_id", null=True)
    kind = models.TextField()
    level_id = models.TextField("id")
    depth = models.SmallIntegerField()
    created_at = models.DateTimeField()
    children = models.IntegerField()
    memories = models.IntegerField()

    class Meta:
        managed = False
        db_table = view("scope_tree")
        default_permissions = ("view",)
        base_manager_name = "objects"
        constraints = (models.UniqueConstraint(fields=("tenant", "number"), name="symfonic_pg_scope"),)

    def __str__(self) -> str:
        return str(self.path)


class Memory(ReadOnlyModel):
    """A memory. `uses` counts those at all scopes; `embedded_by` names the models whose vectors it has."""

    key = RecordKeyField(primary_key=True)
    tenant = models.TextField(db_column="tenant_id")
    number = models.BigIntegerField(db_column="memory_id")
    scope = ScopeField()
    scope_number = models.BigIntegerField(db_column="scope_id")
    record_id = models.TextField()
    layer = models.TextField(choices=[(layer, layer) for layer in sorted(map(str, RETRIEVABLE_LAYERS))])
    kind = models.TextField(blank=True)
    preview = models.TextField()
    text = models.TextField()
    salience = models.FloatField(null=True)
    language = models.TextField(null=True)
    metadata = models.JSONField()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    valid_from = models.DateTimeField(null=True)
    valid_until = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    uses = models.BigIntegerField()
    last_used_at = models.DateTimeField(null=True)
    embedded_by = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = view("memory_list")
        default_permissions = ("view",)
        base_manager_name = "objects"
        verbose_name_plural = "memories"
        constraints = (
            models.UniqueConstraint(fields=("tenant", "record_id"), name="symfonic_pg_record"),
            models.UniqueConstraint(fields=("tenant", "number"), name="symfonic_pg_memory"),
        )

    def __str__(self) -> str:
        return str(self.key)
