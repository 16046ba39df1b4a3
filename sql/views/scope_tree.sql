-- scope_tree: one row a level that was ever written to, for people who read. The join with nothing makes the view
-- read-only and costs nothing. Counts stop at 1,001; what is not selected is not computed.
CREATE VIEW {schema}.scope_tree WITH (security_invoker = true) AS
SELECT {schema}.scope_text(s.tenant_id, s.scope_id) AS path,
       s.tenant_id, s.scope_id, s.parent_id, s.kind, s.level_id, s.depth, s.created_at,
       (SELECT count(*) FROM (
            SELECT FROM {schema}.scopes AS c
             WHERE c.tenant_id = s.tenant_id AND c.parent_id = s.scope_id LIMIT 1001) AS child)::integer AS children,
       (SELECT count(*) FROM (
            SELECT FROM {schema}.memories AS m
             WHERE m.tenant_id = s.tenant_id AND m.scope_id = s.scope_id LIMIT 1001) AS here)::integer AS memories
  FROM {schema}.scopes AS s CROSS JOIN (SELECT) AS read_only;
