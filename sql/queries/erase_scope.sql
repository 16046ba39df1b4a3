-- erase_scope: deletes a scope and all below it: the one write that reaches down.
-- params: $1 tenant, $2 kinds, $3 level ids
WITH RECURSIVE doomed AS (
    SELECT l.scope_id FROM {schema}.lineage($1::text, $2::text[], $3::text[]) AS l WHERE l.distance = 0
    UNION ALL
    SELECT s.scope_id FROM doomed JOIN {schema}.scopes AS s ON s.tenant_id = $1 AND s.parent_id = doomed.scope_id
), counted AS (
    SELECT count(*) AS memories
      FROM doomed JOIN {schema}.memories AS m ON m.tenant_id = $1 AND m.scope_id = doomed.scope_id
), gone AS (
    DELETE FROM {schema}.scopes AS s
     USING {schema}.lineage($1, $2, $3) AS l
     WHERE l.distance = 0 AND s.tenant_id = $1 AND s.scope_id = l.scope_id
)
SELECT counted.memories FROM counted;
