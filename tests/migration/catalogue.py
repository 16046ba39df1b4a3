"""Everything that a schema holds, as comparable lines: what two ways of building it must agree on."""

from __future__ import annotations

import psycopg

_QUERIES = {
    "relation": """
        SELECT c.relname, c.relkind, c.relpersistence, c.reloptions, c.relrowsecurity
        FROM pg_class c
        WHERE c.relnamespace = %(schema)s::regnamespace AND c.relname NOT LIKE 'symfonic_pg_version%%'
    """,
    "column": """
        SELECT c.relname, a.attname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum),
               format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
               a.attstorage, a.attcompression, a.attcollation::regcollation, pg_get_expr(d.adbin, d.adrelid)
        FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'c')
          AND c.relname <> 'symfonic_pg_version'
    """,
    "constraint": """
        SELECT conrelid::regclass, conname, pg_get_constraintdef(oid)
        FROM pg_constraint
        WHERE connamespace = %(schema)s::regnamespace AND conname NOT LIKE 'symfonic_pg_version%%'
    """,
    "index": """
        SELECT pg_get_indexdef(i.indexrelid), i.indisvalid
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE c.relnamespace = %(schema)s::regnamespace AND c.relname NOT LIKE 'symfonic_pg_version%%'
    """,
    "function": """
        SELECT pg_get_functiondef(p.oid), p.proacl
        FROM pg_proc p WHERE p.pronamespace = %(schema)s::regnamespace
    """,
    "view": """
        SELECT c.relname, pg_get_viewdef(c.oid)
        FROM pg_class c WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('v', 'm')
    """,
    "trigger": """
        SELECT pg_get_triggerdef(t.oid)
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE c.relnamespace = %(schema)s::regnamespace AND NOT t.tgisinternal
    """,
    "policy": """
        SELECT c.relname, p.polname, p.polcmd, pg_get_expr(p.polqual, p.polrelid)
        FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE c.relnamespace = %(schema)s::regnamespace
    """,
    "type": """
        SELECT t.typname, t.typtype, format_type(t.typbasetype, t.typtypmod),
               ARRAY(SELECT e.enumlabel FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder)
        FROM pg_type t
        WHERE t.typnamespace = %(schema)s::regnamespace
          AND t.typname NOT IN ('symfonic_pg_version', '_symfonic_pg_version')
    """,
    "comment": """
        SELECT d.classoid::regclass, d.description
        FROM pg_description d JOIN pg_class c ON c.oid = d.objoid
        WHERE c.relnamespace = %(schema)s::regnamespace
    """,
}


def catalogue(dsn: str, schema: str = "symfonic") -> list[str]:
    """The lines of all objects in the schema but Alembic's version table, in a fixed order."""
    with psycopg.connect(dsn) as connection:
        return sorted(
            " | ".join([kind, *map(str, row)])
            for kind, query in _QUERIES.items()
            for row in connection.execute(query, {"schema": f'"{schema}"'})
        )
