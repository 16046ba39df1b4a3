-- ensure_scopes: the numbers of several scopes, creating what is missing; paths come sorted, so that two
-- batches take their locks in one order.
CREATE FUNCTION {schema}.ensure_scopes(paths jsonb)
RETURNS TABLE (ordinal bigint, tenant_id text, scope_id bigint)
LANGUAGE sql VOLATILE
AS $function$
    SELECT path.ordinal, path.tenant, {schema}.ensure_scope(path.tenant, path.kinds, path.level_ids)
      FROM ROWS FROM (jsonb_to_recordset(paths) AS (tenant text, kinds text[], level_ids text[]))
           WITH ORDINALITY AS path(tenant, kinds, level_ids, ordinal)
     ORDER BY path.ordinal
$function$;
