-- record_of: one memory by its record id, wherever in the tenant it lies; a look-up that stays one, like memory_of.
CREATE FUNCTION {schema}.record_of(tenant text, record text) RETURNS SETOF {schema}.memories
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    SELECT * FROM {schema}.memories AS m WHERE m.tenant_id = tenant AND m.record_id = record LIMIT 1
$function$;
