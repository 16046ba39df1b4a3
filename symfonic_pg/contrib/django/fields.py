"""Fields over computed columns of the views, which are looked up through the columns that have an index."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import models
from django.db.models.expressions import Col
from django.db.models.lookups import Exact, In

from symfonic_pg.contrib.django.configuration import configured
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.postgres.rows import scope_parameters
from symfonic_pg.postgres.statements import quoted_schema

# The column of a table that has an index, the SQL that it has to equal, and the parameters of that.
Equality = tuple[str, str, list[Any]]


class ScopeField(models.TextField):
    """The text form of a scope; takes a MemoryScope too."""

    def get_prep_value(self, value: Any) -> Any:
        """The text form."""
        return str(value) if isinstance(value, MemoryScope) else super().get_prep_value(value)

    def located(self, value: str) -> list[Equality]:
        """What the rows of a scope have in common; nothing for what is no scope."""
        try:
            tenant, kinds, level_ids = scope_parameters(MemoryScope.parse(value))
        except MemoryContractError:
            return []
        number = f"{quoted_schema(configured().schema)}.scope_at(%s, %s::text[], %s::text[])"
        return [("tenant_id", "%s", [tenant]), ("scope_id", number, [tenant, kinds, level_ids])]


class RecordKeyField(models.TextField):
    """tenant/record_id: a tenant's text form holds no slash, so the first one ends it."""

    def located(self, value: str) -> list[Equality]:
        """What the row has; nothing for what is no key."""
        tenant, slash, record_id = value.partition("/")
        return [("tenant_id", "%s", [tenant]), ("record_id", "%s", [record_id])] if slash else []


@ScopeField.register_lookup
@RecordKeyField.register_lookup
class LocatedExact(Exact):
    """Equality with a given value, by index."""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        """One condition, or no result at all for a value that nothing can equal."""
        if not isinstance(self.rhs, str):
            sql, parameters = super().as_sql(compiler, connection)
            return sql, list(parameters)
        return _located(self.lhs, [self.rhs], compiler)


@ScopeField.register_lookup
@RecordKeyField.register_lookup
class LocatedIn(In):
    """One of some given values, by index."""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        """A condition for each value."""
        if not self.rhs_is_direct_value():
            sql, parameters = super().as_sql(compiler, connection)
            return sql, list(parameters)
        return _located(self.lhs, [value for value in self.rhs if isinstance(value, str)], compiler)


def _located(column: Any, values: list[str], compiler: Any) -> tuple[str, list[Any]]:
    fields = {field.column: field for field in column.target.model._meta.concrete_fields}
    places = [found for value in dict.fromkeys(values) if (found := column.target.located(value))]
    if not places:
        raise EmptyResultSet
    alternatives = " OR ".join(
        " AND ".join(
            f"{compiler.compile(Col(column.alias, fields[name]))[0]} = {sql}" for name, sql, _ in equalities
        )
        for equalities in places
    )
    return f"({alternatives})", [one for place in places for _, _, given in place for one in given]
