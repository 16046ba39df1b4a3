-- hops: how many edges lie between the nearest of some memories and each memory around them, in either direction.
-- Breadth first: never through an edge or a memory outside the levels given, at most max_hops deep, the
-- strongest edge_limit edges of a memory at each level and direction, node_limit rows in all.
-- Sorting is off so that edges are read in the order of their index, and no further than the limit.
CREATE FUNCTION {schema}.hops(
    tenant text, scopes bigint[], start_ids text[], max_hops integer, edge_limit integer, node_limit integer
)
RETURNS TABLE (memory_id bigint, distance integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE
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
    WITH RECURSIVE walk AS (
        SELECT m.memory_id, 0 AS distance
          FROM unnest(start_ids) AS start(record_id)
         CROSS JOIN LATERAL record_of(tenant, start.record_id) AS m
         WHERE array_position(scopes, m.scope_id) > 0
        UNION
        SELECT next.memory_id, walk.distance + 1
          FROM walk
         CROSS JOIN unnest(scopes) AS level(scope_id)
         CROSS JOIN LATERAL (
            -- before the limit: what has moved out of sight must not crowd out what is visible
            (SELECT a.target_id AS memory_id
               FROM associations AS a
              CROSS JOIN LATERAL memory_of(tenant, a.target_id) AS m
              WHERE a.tenant_id = tenant AND a.source_id = walk.memory_id AND a.scope_id = level.scope_id
                AND array_position(scopes, m.scope_id) > 0
              ORDER BY a.weight DESC, a.target_id
              LIMIT edge_limit)
            UNION ALL
            (SELECT a.source_id
               FROM associations AS a
              CROSS JOIN LATERAL memory_of(tenant, a.source_id) AS m
              WHERE a.tenant_id = tenant AND a.target_id = walk.memory_id AND a.scope_id = level.scope_id
                AND array_position(scopes, m.scope_id) > 0
              LIMIT edge_limit)
         ) AS next
         WHERE walk.distance < max_hops
    )
    -- the recursion yields breadth first, so the limit cuts the farthest
    SELECT reached.memory_id, min(reached.distance)
      FROM (SELECT walk.memory_id, walk.distance FROM walk LIMIT node_limit) AS reached
     GROUP BY reached.memory_id;
END
$function$;
