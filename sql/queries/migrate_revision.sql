-- migrate_revision: the revision that the database stands at; no row before the first one.
-- params: none
SELECT version_num FROM {schema}.symfonic_pg_version
