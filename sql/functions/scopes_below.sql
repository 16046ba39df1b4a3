-- scopes_below: a scope and all below it, for what keeps the store in order; no reader may see through it.
CREATE FUNCTION {schema}.scopes_below(tenant text, kinds text[], level_ids text[]) RETURNS SETOF bigint
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    WITH RECURSIVE below AS (
        SELECT l.scope_id FROM {schema}.lineage(tenant, kinds, level_ids) AS l WHERE l.distance = 0
        UNION ALL
        SELECT s.scope_id FROM below JOIN {schema}.scopes AS s ON s.tenant_id = tenant AND s.parent_id = below.scope_id
    )
    SELECT below.scope_id FROM below
$function$;
