-- associate: writes edges at a scope between records that are visible there; the others are passed over.
CREATE FUNCTION {schema}.associate(
    tenant text, kinds text[], level_ids text[],
    sources text[], targets text[], relationships text[], weights double precision[]
) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, pg_temp
AS $function$
DECLARE
    scopes CONSTANT bigint[] := ARRAY(SELECT l.scope_id FROM lineage(tenant, kinds, level_ids) AS l);
    here bigint;
    written integer := 0;
BEGIN
    IF EXISTS (
        SELECT FROM unnest(sources, targets) AS edge(source, target)
         CROSS JOIN LATERAL record_of(tenant, edge.source) AS s
         CROSS JOIN LATERAL record_of(tenant, edge.target) AS t
         WHERE s.scope_id = ANY (scopes) AND t.scope_id = ANY (scopes)
    ) THEN
        here := ensure_scope(tenant, kinds, level_ids);
        INSERT INTO associations (tenant_id, source_id, scope_id, target_id, relationship, weight)
        SELECT tenant, s.memory_id, here, t.memory_id, edge.relationship, edge.weight
          FROM unnest(sources, targets, relationships, weights) AS edge(source, target, relationship, weight)
         CROSS JOIN LATERAL record_of(tenant, edge.source) AS s
         CROSS JOIN LATERAL record_of(tenant, edge.target) AS t
         WHERE s.scope_id = ANY (scopes) AND t.scope_id = ANY (scopes)
         ORDER BY s.memory_id, t.memory_id, edge.relationship
            ON CONFLICT (tenant_id, source_id, scope_id, target_id, relationship)
            DO UPDATE SET weight = excluded.weight;
        GET DIAGNOSTICS written = ROW_COUNT;
    END IF;
    RETURN written;
END
$function$;
