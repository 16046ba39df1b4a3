-- doctor_rights: status, detail and fix for each kind of right that a role lacks; no row where it has all. What a
-- reader needs is a failure, what only a writer needs a warning.
-- params: $1 the role's name, null for the connected one
WITH asked AS (
    SELECT r.oid, quote_ident(r.rolname) AS name
      FROM pg_catalog.pg_roles AS r WHERE r.rolname = coalesce($1::text, current_user::text)
), schemas AS (
    SELECT n.oid, quote_ident(n.nspname) AS name
      FROM pg_catalog.pg_namespace AS n
     WHERE n.oid = to_regnamespace('{schema}')
        OR n.oid IN (SELECT e.extnamespace FROM pg_catalog.pg_extension AS e WHERE e.extname = 'vector')
), tables AS (
    SELECT c.oid, c.oid::regclass::text AS name, c.relname = 'symfonic_pg_version' OR c.relkind = 'v' AS read_only
      FROM pg_catalog.pg_class AS c
     WHERE c.relnamespace = to_regnamespace('{schema}') AND c.relkind IN ('r', 'p', 'v')
), sequences AS (
    SELECT c.oid, c.oid::regclass::text AS name
      FROM pg_catalog.pg_class AS c
     WHERE c.relnamespace = to_regnamespace('{schema}') AND c.relkind = 'S'
), functions AS (
    SELECT p.oid, p.oid::regprocedure::text AS name
      FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = to_regnamespace('{schema}')
), lacking (place, grade, privilege, kind, object) AS (
    SELECT 1, 'failure', 'USAGE', 'SCHEMA ', s.name
      FROM schemas AS s, asked AS a WHERE NOT has_schema_privilege(a.oid, s.oid, 'USAGE')
    UNION ALL
    SELECT 2, 'failure', 'SELECT', '', t.name
      FROM tables AS t, asked AS a WHERE NOT has_table_privilege(a.oid, t.oid, 'SELECT')
    UNION ALL
    SELECT 3, 'failure', 'EXECUTE', 'FUNCTION ', f.name
      FROM functions AS f, asked AS a WHERE NOT has_function_privilege(a.oid, f.oid, 'EXECUTE')
    UNION ALL
    SELECT 4, 'warning', 'INSERT, UPDATE, DELETE', '', t.name
      FROM tables AS t, asked AS a
     WHERE NOT t.read_only
       AND NOT (has_table_privilege(a.oid, t.oid, 'INSERT') AND has_table_privilege(a.oid, t.oid, 'UPDATE')
                AND has_table_privilege(a.oid, t.oid, 'DELETE'))
    UNION ALL
    -- bulk loading numbers its rows before it copies them
    SELECT 5, 'warning', 'USAGE', 'SEQUENCE ', s.name
      FROM sequences AS s, asked AS a WHERE NOT has_sequence_privilege(a.oid, s.oid, 'USAGE')
)
SELECT l.grade,
       format('%s lacks %s on %s', a.name, l.privilege, string_agg(l.object, ', ' ORDER BY l.object))
       || CASE l.place WHEN 4 THEN ': it can read, not write' WHEN 5 THEN ': it cannot load in bulk' ELSE '' END,
       format('GRANT %s ON %s%s TO %s;', l.privilege, l.kind, string_agg(l.object, ', ' ORDER BY l.object), a.name)
  FROM lacking AS l, asked AS a
 GROUP BY l.place, l.grade, l.privilege, l.kind, a.name
 ORDER BY l.place
