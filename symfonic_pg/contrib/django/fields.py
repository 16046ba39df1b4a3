"""Fields over computed columns of the views, which are looked up through the columns that have an index."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import models
from django.db.models.lookups import Exact, In

from symfonic_pg.contrib.django.configuration import configured
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.postgres.rows import scope_parameters
from symfonic_pg.postgres.statements import quoted_schema

Condition = tuple[str, list[Any]]


class ScopeField(models.TextField):
    """The text form of a scope; takes a MemoryScope too."""

    def get_prep_value(self, value: Any) -> Any:
        """The text form."""
        return str(value) if isinstance(value, MemoryScope) else super().get_prep_value(value)

    def located(self, value: str, table: str) -> Condition | None:
        """The condition on the indexed columns of a table; None for what is no scope."""
        try:
            tenant, kinds, level_ids = scope_parameters(MemoryScope.parse(value))
        except MemoryContractError:
            return None
        at = f"{quoted_schema(configured().schema)}.scope_at(%s, %s::text[], %s::text[])"
        condition = f"({table}.tenant_id = %s AND {table}.scope_id = {at})"
        return condition, [tenant, tenant, kinds, level_ids]


class RecordKeyField(models.TextField):
    """tenant/record_id: a tenant's text form holds no slash, so the first one ends it."""

    def located(self, value: str, table: str) -> Condition | None:
        """The condition on the indexed columns of a table; None for what is no key."""
        tenant, slash, record_id = value.partition("/")
        return (
            (f"({table}.tenant_id = %s AND {table}.record_id = %s)", [tenant, record_id]) if slash else None
        )


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


def _located(column: Any, values: list[str], compiler: Any) -> Condition:
    table = compiler.quote_name_unless_alias(column.alias)
    conditions = [column.target.located(value, table) for value in dict.fromkeys(values)]
    found = [condition for condition in conditions if condition is not None]
    if not found:
        raise EmptyResultSet
    return f"({' OR '.join(sql for sql, _ in found)})", [one for _, parameters in found for one in parameters]
