-- count_hops: how many edges, in either direction, lie between one record and each of some others (functions/hops.sql).
-- params: $1 tenant, $2 kinds, $3 level ids, $4 start record ids, $5 record ids, $6 most hops, $7 edge limit, $8 node limit
WITH seen AS MATERIALIZED (
    SELECT array_agg(l.scope_id) AS scopes FROM {schema}.lineage($1::text, $2::text[], $3::text[]) AS l
)
SELECT m.record_id, h.distance
  FROM seen
 CROSS JOIN LATERAL {schema}.hops($1, seen.scopes, $4::text[], $6::integer, $7::integer, $8::integer) AS h
 CROSS JOIN LATERAL {schema}.memory_of($1, h.memory_id) AS m
 WHERE m.record_id = ANY ($5::text[]);
