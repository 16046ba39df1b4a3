-- migrate_invalid_indexes: the indexes of the schema that a concurrent build has left unfinished.
-- params: none
SELECT c.relname
  FROM pg_catalog.pg_index AS i
  JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
 WHERE c.relnamespace = to_regnamespace('{schema}') AND NOT i.indisvalid
