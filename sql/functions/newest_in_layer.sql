-- newest_in_layer: the memories of one layer at one level, newest first; none where the layer is not wanted.
-- PostgreSQL inlines it: its caller reads the index in this order and no further than it must.
CREATE FUNCTION {schema}.newest_in_layer(tenant text, level bigint, wanted_layers text[], one_layer text)
RETURNS SETOF {schema}.memories
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    SELECT *
      FROM {schema}.memories AS m
     WHERE m.tenant_id = tenant AND m.scope_id = level AND m.layer = one_layer
       AND one_layer = ANY (wanted_layers)
     ORDER BY m.updated_at DESC, m.record_id
$function$;
