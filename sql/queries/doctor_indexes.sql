-- doctor_indexes: name and state (missing, invalid) of each index of the store that cannot be used; no row where
-- all is well. Invalid ones are found whatever their name, missing ones among the names given.
-- params: $1 the names that the schema should have
WITH present AS (
    SELECT c.relname::text AS name, i.indisvalid AND i.indisready AS usable
      FROM pg_catalog.pg_index AS i
      JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
     WHERE c.relnamespace = to_regnamespace('{schema}')
)
SELECT wanted.name, 'missing', ''
  FROM unnest($1::text[]) AS wanted (name)
 WHERE NOT EXISTS (SELECT FROM present AS p WHERE p.name = wanted.name)
UNION ALL
SELECT p.name, 'invalid', format('REINDEX INDEX CONCURRENTLY {schema}.%I;', p.name)
  FROM present AS p
 WHERE NOT p.usable
 ORDER BY 1
