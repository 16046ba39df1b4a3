-- neighbours: the edges out of some records, strongest first, where the edge and both its ends are visible at a scope.
-- The same edge at several heights counts once, from the nearest. At most the strongest edge_limit a record and level.
-- Sorting is off so that edges are read in the order of their index, and no further than the limit.
CREATE FUNCTION {schema}.neighbours(
    tenant text, kinds text[], level_ids text[], record_ids text[], edge_limit integer
)
RETURNS TABLE (
    source text, relationship text, weight double precision, distance integer, record_id text, layer text, text text,
    salience double precision, kind text, created_at timestamptz, updated_at timestamptz, access_count bigint,
    last_accessed_at timestamptz, valid_from timestamptz, valid_until timestamptz, expires_at timestamptz,
    language text, metadata text
)
LANGUAGE plpgsql STABLE
SET search_path = {schema}, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_sort = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_material = off
AS $function$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH level AS MATERIALIZED (
        SELECT l.scope_id, l.distance FROM lineage(tenant, kinds, level_ids) AS l
    ), seen AS MATERIALIZED (
        SELECT array_agg(level.scope_id) AS scopes, array_agg(level.distance) AS distances FROM level
    ), edge AS (
        SELECT DISTINCT ON (asked.record_id, a.target_id, a.relationship)
               asked.record_id AS source, a.target_id, a.relationship, a.weight
          FROM seen
         CROSS JOIN (SELECT DISTINCT unnest(record_ids)) AS asked(record_id)
         CROSS JOIN LATERAL record_of(tenant, asked.record_id) AS m
         CROSS JOIN level
         CROSS JOIN LATERAL (
            SELECT a.target_id, a.relationship, a.weight
              FROM associations AS a
             -- before the limit: what has moved out of sight must not crowd out what is visible
             CROSS JOIN LATERAL memory_of(tenant, a.target_id) AS target
             WHERE a.tenant_id = tenant AND a.source_id = m.memory_id AND a.scope_id = level.scope_id
               AND array_position(seen.scopes, target.scope_id) > 0
             ORDER BY a.weight DESC, a.target_id, a.relationship
             LIMIT edge_limit
         ) AS a
         WHERE array_position(seen.scopes, m.scope_id) > 0
         ORDER BY asked.record_id, a.target_id, a.relationship, level.distance
    )
    SELECT edge.source, edge.relationship, edge.weight, r.*
      FROM edge CROSS JOIN seen
     CROSS JOIN LATERAL seen_record(tenant, seen.scopes, seen.distances, edge.target_id) AS r
     ORDER BY edge.weight DESC, edge.source COLLATE "C", r.record_id COLLATE "C", edge.relationship COLLATE "C";
END
$function$;
