-- doctor_search_path: status, detail and fix for the functions that name the schema of pgvector in their
-- search_path: it moved away from under them if the extension was moved after the migration.
-- params: none
WITH functions AS (
    -- Every path ends in pg_temp, so that no temporary table stands before the store's own.
    SELECT p.proname,
           array_remove(
               string_to_array(replace(substr(setting, length('search_path=') + 1), ' ', ''), ','), 'pg_temp'
           ) AS path
      FROM pg_catalog.pg_proc AS p, unnest(p.proconfig) AS setting
     WHERE p.pronamespace = to_regnamespace('{schema}') AND setting LIKE 'search_path=%'
), extension AS (
    SELECT quote_ident(n.nspname) AS home
      FROM pg_catalog.pg_extension AS e
      JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
     WHERE e.extname = 'vector'
), lost AS (
    SELECT f.proname, f.path[2] AS home
      FROM functions AS f
     WHERE cardinality(f.path) > 1 AND NOT EXISTS (SELECT FROM extension AS e WHERE e.home = ANY (f.path))
)
SELECT CASE WHEN EXISTS (SELECT FROM lost) THEN 'failure' ELSE 'ok' END,
       coalesce(
           (SELECT format('functions look for pgvector in %s, it lives in %s: %s', min(l.home), (SELECT home FROM extension),
                          string_agg(l.proname, ', ' ORDER BY l.proname))
              FROM lost AS l HAVING count(*) > 0),
           'every function finds pgvector where it lives'),
       coalesce((SELECT format('ALTER EXTENSION vector SET SCHEMA %s;', min(l.home)) FROM lost AS l HAVING count(*) > 0), '')
