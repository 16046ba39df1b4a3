-- get_records: the records of some ids that are visible at a scope.
-- params: $1 tenant, $2 kinds, $3 level ids, $4 record ids
WITH seen AS MATERIALIZED (
    SELECT array_agg(l.scope_id) AS scopes, array_agg(l.distance) AS distances
      FROM {schema}.lineage($1::text, $2::text[], $3::text[]) AS l
)
SELECT r.*
  FROM seen
 CROSS JOIN LATERAL (
    SELECT m.memory_id
      FROM unnest($4::text[]) AS asked(record_id)
     CROSS JOIN LATERAL {schema}.record_of($1, asked.record_id) AS m
 ) AS hit
 CROSS JOIN LATERAL {schema}.seen_record($1, seen.scopes, seen.distances, hit.memory_id) AS r;
