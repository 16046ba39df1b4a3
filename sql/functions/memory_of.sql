-- memory_of: one memory by its number. Inlined as a subquery with LIMIT, a look-up by key stays one: without it the
-- planner may read a whole tenant and join, since to its statistics a tenant is a handful of rows.
CREATE FUNCTION {schema}.memory_of(tenant text, memory bigint) RETURNS SETOF {schema}.memories
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    SELECT * FROM {schema}.memories AS m WHERE m.tenant_id = tenant AND m.memory_id = memory LIMIT 1
$function$;
