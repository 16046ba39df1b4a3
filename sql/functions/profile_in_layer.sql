-- profile_in_layer: the profile memories of one layer at one level, most salient first;
-- none where the layer is not wanted.
-- PostgreSQL inlines it: its caller reads the index in this order and no further than it must.
CREATE FUNCTION {schema}.profile_in_layer(tenant text, level bigint, wanted_layers text[], one_layer text)
RETURNS SETOF {schema}.memories
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    SELECT *
      FROM {schema}.memories AS m
     WHERE m.tenant_id = tenant AND m.scope_id = level AND m.layer = one_layer AND m.kind = 'profile'
       AND one_layer = ANY (wanted_layers)
     ORDER BY m.salience DESC NULLS LAST, m.updated_at DESC, m.record_id
$function$;
