-- scope_at: the number of the level at the end of a path; NULL where it has no row.
CREATE FUNCTION {schema}.scope_at(tenant text, kinds text[], level_ids text[]) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    SELECT l.scope_id FROM {schema}.lineage(tenant, kinds, level_ids) AS l WHERE l.distance = 0
$function$;
