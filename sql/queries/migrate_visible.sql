-- migrate_visible: the tables of the schema that a bare name stands for, by the session's search_path.
-- params: none
SELECT c.relname
  FROM pg_catalog.pg_class AS c
 WHERE c.relnamespace = to_regnamespace('{schema}') AND c.relkind IN ('r', 'p', 'v', 'm')
   AND pg_catalog.pg_table_is_visible(c.oid)
