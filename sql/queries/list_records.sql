-- list_records: one page of what is visible at a scope, newest first; the next page starts after the last row's key.
-- params: $1 tenant, $2 kinds, $3 level ids, $4 layers, $5 kind or NULL, $6 metadata filter or NULL, $7 exactly this level, $8 limit, $9 updated_at and $10 record id of the last row before or NULL
WITH level AS MATERIALIZED (
    SELECT l.scope_id, l.distance FROM {schema}.lineage($1::text, $2::text[], $3::text[]) AS l
), seen AS MATERIALIZED (
    SELECT array_agg(level.scope_id) AS scopes, array_agg(level.distance) AS distances FROM level
), page AS (
    SELECT hit.memory_id
      FROM level
     CROSS JOIN unnest($4::text[]) AS wanted(layer)
     CROSS JOIN LATERAL (
        SELECT m.memory_id, m.updated_at, m.record_id
          FROM {schema}.memories AS m
         WHERE m.tenant_id = $1 AND m.scope_id = level.scope_id AND m.layer = wanted.layer
           AND ($5::text IS NULL OR m.kind = $5) AND ($6::text IS NULL OR m.metadata @> $6::text::jsonb)
           AND m.updated_at <= coalesce($9::timestamptz, 'infinity')
           AND ($9 IS NULL OR m.updated_at < $9 OR m.record_id > $10::text)
         ORDER BY m.updated_at DESC, m.record_id
         LIMIT $8::integer
     ) AS hit
     WHERE level.distance = 0 OR NOT $7::boolean
     ORDER BY hit.updated_at DESC, hit.record_id
     LIMIT $8
)
SELECT r.*
  FROM page CROSS JOIN seen
 CROSS JOIN LATERAL {schema}.seen_record($1, seen.scopes, seen.distances, page.memory_id) AS r
 ORDER BY r.updated_at DESC, r.record_id COLLATE "C";
