-- elsewhere: the records of a batch whose id lies at another scope of their tenant, as remember reports them.
CREATE FUNCTION {schema}.elsewhere(paths jsonb, records jsonb)
RETURNS TABLE (place integer, outcome text, has_vector boolean)
LANGUAGE sql STABLE
AS $function$
    SELECT r.place, 'elsewhere', false
      FROM jsonb_to_recordset(records) AS r(place integer, scope bigint, record_id text)
      JOIN {schema}.find_scopes(paths) AS path ON path.ordinal = r.scope
     CROSS JOIN LATERAL {schema}.record_of(path.tenant_id, r.record_id) AS m
     WHERE m.scope_id IS DISTINCT FROM path.scope_id
     ORDER BY r.place
$function$;
