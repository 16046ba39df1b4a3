-- prepare_load: makes the scopes of a bulk load and hands out the keys of its new rows. memory_id is NULL for a
-- record_id that the tenant holds already, wherever it lies: such a record goes through remember. model_id is NULL
-- where there is no such model.
CREATE FUNCTION {schema}.prepare_load(paths jsonb, ordinals integer[], record_ids text[], model_name text)
RETURNS TABLE (place bigint, scope_id bigint, memory_id bigint, model_id smallint)
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, pg_temp
AS $function$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT r.place, path.scope_id,
           CASE WHEN m.memory_id IS NULL
                THEN nextval(pg_get_serial_sequence('memories', 'memory_id')) END,
           model.model_id
      FROM unnest(ordinals, record_ids) WITH ORDINALITY AS r(ordinal, record_id, place)
      JOIN ensure_scopes(paths) AS path ON path.ordinal = r.ordinal
      LEFT JOIN LATERAL record_of(path.tenant_id, r.record_id) AS m ON true
      LEFT JOIN models AS model ON model.name = model_name
     ORDER BY r.place;
END
$function$;
