-- salient_route: the most salient live memories, at most fanout of them at one level.
-- bound: 0 the true top, 2 the scan stopped at scan_limit rows before it had found fanout.
-- Sorting is off so that the layers' ordered index scans are merged, and none is read further than it must.
CREATE FUNCTION {schema}.salient_route(
    tenant text, level bigint, wanted_layers text[], moment timestamptz, metadata_filter jsonb,
    fanout integer, scan_limit integer, OUT ids bigint[], OUT bound integer
)
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET enable_sort = off
AS $function$
BEGIN
    ids := ARRAY(
        SELECT scan.memory_id
          FROM (
            SELECT *
              FROM (
                SELECT * FROM most_salient_in_layer(tenant, level, wanted_layers, 'semantic')
                UNION ALL SELECT * FROM most_salient_in_layer(tenant, level, wanted_layers, 'episodic')
                UNION ALL SELECT * FROM most_salient_in_layer(tenant, level, wanted_layers, 'procedural')
                UNION ALL SELECT * FROM most_salient_in_layer(tenant, level, wanted_layers, 'prospective')
              ) AS m
             ORDER BY m.salience DESC, m.updated_at DESC, m.record_id
             LIMIT scan_limit
          ) AS scan
         WHERE is_live(scan.valid_from, scan.valid_until, scan.expires_at, moment)
           AND (metadata_filter IS NULL OR scan.metadata @> metadata_filter)
         ORDER BY scan.salience DESC, scan.updated_at DESC, scan.record_id
         LIMIT fanout);
    bound := CASE WHEN cardinality(ids) < fanout AND EXISTS (
        SELECT FROM memories AS m
         WHERE m.tenant_id = tenant AND m.scope_id = level AND m.layer = ANY (wanted_layers) AND m.salience IS NOT NULL
        OFFSET scan_limit LIMIT 1) THEN 2 ELSE 0 END;
END
$function$;
