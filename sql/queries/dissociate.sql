-- dissociate: deletes edges that lie exactly at a scope.
-- params: $1 tenant, $2 kinds, $3 level ids, $4 sources, $5 targets, $6 relationships
WITH gone AS (
    DELETE FROM {schema}.associations AS a
     USING {schema}.lineage($1::text, $2::text[], $3::text[]) AS l
     CROSS JOIN unnest($4::text[], $5::text[], $6::text[]) AS edge(source, target, relationship)
     CROSS JOIN LATERAL {schema}.record_of($1, edge.source) AS s
     CROSS JOIN LATERAL {schema}.record_of($1, edge.target) AS t
     WHERE l.distance = 0 AND a.tenant_id = $1 AND a.scope_id = l.scope_id
       AND a.source_id = s.memory_id AND a.target_id = t.memory_id AND a.relationship = edge.relationship
    RETURNING a.source_id
)
SELECT count(*) FROM gone;
