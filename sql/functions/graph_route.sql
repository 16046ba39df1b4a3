-- graph_route: the live memories nearest by edges to the memories that a conversation is about, at most fanout
-- a level, and the distances of all that were reached.
-- bound: 0 nothing lies beyond, 2 the depth or a bound stopped the walk before it could know.
CREATE FUNCTION {schema}.graph_route(
    tenant text, scopes bigint[], wanted_layers text[], moment timestamptz, metadata_filter jsonb,
    fanout integer, context_ids text[],
    OUT ids bigint[], OUT reached_ids bigint[], OUT reached_hops integer[], OUT bound integer
)
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $function$
DECLARE
    max_hops CONSTANT integer := 3;
    edge_limit CONSTANT integer := 1000;
    node_limit CONSTANT integer := 5000;
BEGIN
    SELECT coalesce(array_agg(h.memory_id), '{}'), coalesce(array_agg(h.distance), '{}')
      INTO reached_ids, reached_hops
      FROM hops(tenant, scopes, context_ids, max_hops, edge_limit, node_limit) AS h;

    SELECT coalesce(array_agg(ranked.memory_id), '{}') INTO ids
      FROM (
        SELECT m.memory_id,
               row_number() OVER (PARTITION BY m.scope_id ORDER BY reached.distance, m.record_id) AS place
          FROM unnest(reached_ids, reached_hops) AS reached(memory_id, distance)
          JOIN memories AS m ON m.tenant_id = tenant AND m.memory_id = reached.memory_id
         WHERE reached.distance > 0 AND m.layer = ANY (wanted_layers)
           AND is_live(m.valid_from, m.valid_until, m.expires_at, moment)
           AND (metadata_filter IS NULL OR m.metadata @> metadata_filter)
      ) AS ranked
     WHERE ranked.place <= fanout;

    bound := CASE
        WHEN max_hops = ANY (reached_hops) OR cardinality(reached_ids) >= node_limit THEN 2
        WHEN EXISTS (
            SELECT FROM unnest(reached_ids) AS reached(memory_id)
             WHERE EXISTS (SELECT FROM associations AS a
                            WHERE a.tenant_id = tenant AND a.source_id = reached.memory_id AND a.scope_id = ANY (scopes)
                              AND EXISTS (SELECT FROM memory_of(tenant, a.target_id) AS m WHERE m.scope_id = ANY (scopes))
                           OFFSET edge_limit LIMIT 1)
                OR EXISTS (SELECT FROM associations AS a
                            WHERE a.tenant_id = tenant AND a.target_id = reached.memory_id AND a.scope_id = ANY (scopes)
                              AND EXISTS (SELECT FROM memory_of(tenant, a.source_id) AS m WHERE m.scope_id = ANY (scopes))
                           OFFSET edge_limit LIMIT 1)) THEN 2
        ELSE 0 END;
END
$function$;
