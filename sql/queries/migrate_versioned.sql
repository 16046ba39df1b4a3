-- migrate_versioned: whether the schema has a version table that this role can see.
-- params: none
SELECT to_regclass('{schema}.symfonic_pg_version') IS NOT NULL
