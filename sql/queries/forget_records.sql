-- forget_records: deletes records that lie exactly at a scope, with all that hangs on them.
-- params: $1 tenant, $2 kinds, $3 level ids, $4 record ids
WITH doomed AS MATERIALIZED (
    -- locked in one order, so that two calls cannot wait for each other
    SELECT m.memory_id
      FROM {schema}.memories AS m
     WHERE m.tenant_id = $1 AND m.record_id = ANY ($4::text[])
       -- not =, which could make the whole scope the way to its records
       AND m.scope_id IS NOT DISTINCT FROM (
            SELECT l.scope_id FROM {schema}.lineage($1::text, $2::text[], $3::text[]) AS l WHERE l.distance = 0)
     ORDER BY m.memory_id
       FOR UPDATE OF m
), gone AS (
    DELETE FROM {schema}.memories AS m
     USING doomed
     WHERE m.tenant_id = $1 AND m.memory_id = doomed.memory_id
    RETURNING m.memory_id
)
SELECT count(*) FROM gone;
