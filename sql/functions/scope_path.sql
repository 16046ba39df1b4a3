-- scope_path: the kinds and ids of a level's path, root first.
CREATE FUNCTION {schema}.scope_path(tenant text, level bigint, OUT kinds text[], OUT level_ids text[])
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    WITH RECURSIVE walk AS (
        SELECT s.parent_id, s.kind, s.level_id, s.depth
          FROM {schema}.scopes AS s
         WHERE s.tenant_id = tenant AND s.scope_id = level
        UNION ALL
        SELECT s.parent_id, s.kind, s.level_id, s.depth
          FROM walk JOIN {schema}.scopes AS s ON s.tenant_id = tenant AND s.scope_id = walk.parent_id
    )
    SELECT array_agg(walk.kind ORDER BY walk.depth), array_agg(walk.level_id ORDER BY walk.depth) FROM walk
$function$;
