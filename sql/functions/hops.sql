-- hops: how many edges lie between the nearest of some memories and each memory around them, in either direction.
-- Breadth first: never through an edge or a memory outside the levels given, at most max_hops deep, the
-- strongest edge_limit edges of a memory at each level and direction, node_limit rows in all.
CREATE FUNCTION {schema}.hops(
    tenant text, scopes bigint[], start_ids text[], max_hops integer, edge_limit integer, node_limit integer
)
RETURNS TABLE (memory_id bigint, distance integer)
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    WITH RECURSIVE walk AS (
        SELECT m.memory_id, 0 AS distance
          FROM {schema}.memories AS m
         WHERE m.tenant_id = tenant AND m.record_id = ANY (start_ids) AND m.scope_id = ANY (scopes)
        UNION
        SELECT m.memory_id, walk.distance + 1
          FROM walk
         CROSS JOIN unnest(scopes) AS level(scope_id)
         CROSS JOIN LATERAL (
            (SELECT a.target_id AS memory_id
               FROM {schema}.associations AS a
              WHERE a.tenant_id = tenant AND a.source_id = walk.memory_id AND a.scope_id = level.scope_id
              ORDER BY a.weight DESC, a.target_id
              LIMIT edge_limit)
            UNION ALL
            (SELECT a.source_id
               FROM {schema}.associations AS a
              WHERE a.tenant_id = tenant AND a.target_id = walk.memory_id AND a.scope_id = level.scope_id
              LIMIT edge_limit)
         ) AS next
          JOIN {schema}.memories AS m
            ON m.tenant_id = tenant AND m.memory_id = next.memory_id AND m.scope_id = ANY (scopes)
         WHERE walk.distance < max_hops
    )
    -- the recursion yields breadth first, so the limit cuts the farthest
    SELECT reached.memory_id, min(reached.distance)
      FROM (SELECT walk.memory_id, walk.distance FROM walk LIMIT node_limit) AS reached
     GROUP BY reached.memory_id
$function$;
