-- lineage: the levels of a scope's own path that exist, with their distance from the path's end.
-- The one rule of visibility: a query sees what this returns and nothing else. It walks down from the root
-- along the path; a level that was never written to has no row and still counts in the distance.
CREATE FUNCTION {schema}.lineage(tenant text, kinds text[], level_ids text[])
RETURNS TABLE (scope_id bigint, distance integer, languages text[])
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    WITH RECURSIVE walk AS (
        SELECT root.scope_id, root.depth, root.languages
          FROM {schema}.scopes AS root
         WHERE root.tenant_id = tenant AND root.parent_id IS NULL
           AND root.kind = kinds[1] AND root.level_id = level_ids[1]
        UNION ALL
        SELECT child.scope_id, child.depth, child.languages
          FROM walk
         CROSS JOIN LATERAL (
            -- at most one; the limit keeps this a look-up by the whole key, however many scopes a tenant has
            SELECT next.scope_id, next.depth, next.languages
              FROM {schema}.scopes AS next
             WHERE next.tenant_id = tenant AND next.parent_id = walk.scope_id
               AND next.kind = kinds[walk.depth + 1] AND next.level_id = level_ids[walk.depth + 1]
             LIMIT 1
         ) AS child
    )
    SELECT walk.scope_id, cardinality(kinds) - walk.depth, walk.languages FROM walk
$function$;
