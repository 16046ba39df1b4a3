-- dissociate: deletes edges that lie exactly at a scope, each found by its key, whatever the statistics say.
CREATE FUNCTION {schema}.dissociate(
    tenant text, kinds text[], level_ids text[], sources text[], targets text[], relationships text[]
) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, pg_temp
AS $function$
DECLARE
    here bigint;
    edge record;
    gone integer := 0;
BEGIN
    SELECT l.scope_id INTO here FROM lineage(tenant, kinds, level_ids) AS l WHERE l.distance = 0;
    FOR edge IN
        SELECT s.memory_id AS source_id, t.memory_id AS target_id, given.relationship
          FROM unnest(sources, targets, relationships) AS given(source, target, relationship)
         CROSS JOIN LATERAL record_of(tenant, given.source) AS s
         CROSS JOIN LATERAL record_of(tenant, given.target) AS t
         WHERE here IS NOT NULL
         ORDER BY s.memory_id, t.memory_id, given.relationship
    LOOP
        DELETE FROM associations AS a
         WHERE a.tenant_id = tenant AND a.source_id = edge.source_id AND a.scope_id = here
           AND a.target_id = edge.target_id AND a.relationship = edge.relationship;
        IF FOUND THEN gone := gone + 1; END IF;
    END LOOP;
    RETURN gone;
END
$function$;
