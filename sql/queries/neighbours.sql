-- neighbours: the edges out of some records, strongest first, where the edge and both its ends are visible at a scope.
-- The same edge at several heights counts once, from the nearest. At most the strongest $5 a record and level.
-- params: $1 tenant, $2 kinds, $3 level ids, $4 record ids, $5 edge limit
WITH level AS MATERIALIZED (
    SELECT l.scope_id, l.distance FROM {schema}.lineage($1::text, $2::text[], $3::text[]) AS l
), seen AS MATERIALIZED (
    SELECT array_agg(level.scope_id) AS scopes, array_agg(level.distance) AS distances FROM level
), edge AS (
    SELECT DISTINCT ON (source.record_id, a.target_id, a.relationship)
           source.record_id AS source, a.target_id, a.relationship, a.weight
      FROM seen
     CROSS JOIN LATERAL (
        SELECT m.memory_id, m.record_id
          FROM {schema}.memories AS m
         WHERE m.tenant_id = $1 AND m.record_id = ANY ($4::text[]) AND m.scope_id = ANY (seen.scopes)
     ) AS source
     CROSS JOIN level
     CROSS JOIN LATERAL (
        SELECT a.target_id, a.relationship, a.weight
          FROM {schema}.associations AS a
         WHERE a.tenant_id = $1 AND a.source_id = source.memory_id AND a.scope_id = level.scope_id
         ORDER BY a.weight DESC, a.target_id, a.relationship
         LIMIT $5::integer
     ) AS a
     ORDER BY source.record_id, a.target_id, a.relationship, level.distance
)
SELECT edge.source, edge.relationship, edge.weight, r.*
  FROM edge CROSS JOIN seen
 CROSS JOIN LATERAL {schema}.seen_record($1, seen.scopes, seen.distances, edge.target_id) AS r
 ORDER BY edge.weight DESC, edge.source COLLATE "C", r.record_id COLLATE "C", edge.relationship COLLATE "C";
