-- check_writes: whether this session could write now: in recovery or not, read only or not, and the rights that it
-- lacks, as one text; null where it has all that reading and writing memories takes.
-- params: none
WITH objects AS (
    SELECT c.oid, c.relname, c.relkind
      FROM pg_catalog.pg_class AS c
     WHERE c.relnamespace = to_regnamespace('{schema}') AND c.relkind IN ('r', 'p', 'S') AND c.relname <> 'symfonic_pg_version'
), lacking (privilege, name) AS (
    SELECT 'USAGE', n.nspname::text
      FROM pg_catalog.pg_namespace AS n
     WHERE (n.oid = to_regnamespace('{schema}')
            OR n.oid IN (SELECT e.extnamespace FROM pg_catalog.pg_extension AS e WHERE e.extname = 'vector'))
       AND NOT has_schema_privilege(n.oid, 'USAGE')
    UNION ALL
    -- CASE, since nothing else keeps a table out of a question about sequences.
    SELECT wanted.privilege, o.relname::text
      FROM objects AS o
      JOIN (VALUES (false, 'SELECT'), (false, 'INSERT'), (false, 'UPDATE'), (false, 'DELETE'), (true, 'USAGE'))
           AS wanted (of_sequence, privilege) ON wanted.of_sequence = (o.relkind = 'S')
     WHERE NOT CASE WHEN o.relkind = 'S' THEN has_sequence_privilege(o.oid, wanted.privilege)
                    ELSE has_table_privilege(o.oid, wanted.privilege) END
    UNION ALL
    SELECT 'EXECUTE', p.proname::text
      FROM pg_catalog.pg_proc AS p
     WHERE p.pronamespace = to_regnamespace('{schema}') AND NOT has_function_privilege(p.oid, 'EXECUTE')
)
SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::boolean,
       (SELECT string_agg(l.privilege || ' on ' || l.name, ', ' ORDER BY l.privilege, l.name) FROM lacking AS l)
