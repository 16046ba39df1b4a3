-- sizes: tables and indexes of a schema, largest first.
-- params: $1 schema
SELECT c.relname::text, pg_relation_size(c.oid)
  FROM pg_class AS c
 WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'i')
 ORDER BY 2 DESC LIMIT 8;
