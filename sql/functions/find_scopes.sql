-- find_scopes: the numbers of several scopes, NULL for one that has no row: {"tenant", "kinds", "level_ids"} each.
CREATE FUNCTION {schema}.find_scopes(paths jsonb)
RETURNS TABLE (ordinal bigint, tenant_id text, scope_id bigint)
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    SELECT path.ordinal, path.tenant, l.scope_id
      FROM ROWS FROM (jsonb_to_recordset(paths) AS (tenant text, kinds text[], level_ids text[]))
           WITH ORDINALITY AS path(tenant, kinds, level_ids, ordinal)
      LEFT JOIN LATERAL {schema}.lineage(path.tenant, path.kinds, path.level_ids) AS l ON l.distance = 0
$function$;
