-- append_turns: adds conversation turns at a scope in the order given; a turn_id that is there already stays as it is.
CREATE FUNCTION {schema}.append_turns(
    tenant text, kinds text[], level_ids text[], turn_ids text[], turns bigint[], speakers text[], texts text[]
) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, pg_temp
AS $function$
DECLARE
    added integer := 0;
BEGIN
    IF cardinality(turn_ids) > 0 THEN
        INSERT INTO turns (tenant_id, scope_id, turn_id, turn, speaker, text)
        SELECT tenant, here.scope_id, said.turn_id, said.turn, said.speaker, said.text
          FROM ensure_scope(tenant, kinds, level_ids) AS here(scope_id)
         CROSS JOIN unnest(turn_ids, turns, speakers, texts)
               WITH ORDINALITY AS said(turn_id, turn, speaker, text, place)
         ORDER BY said.place
            ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
    END IF;
    RETURN added;
END
$function$;
