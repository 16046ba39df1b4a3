-- migrate_vectors: the schema in which the extension vector lives; no row where the database has none.
-- params: none
SELECT n.nspname
FROM pg_catalog.pg_extension e
JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'
