-- recent_route: the newest live memories, at most fanout of them at one level.
-- bound: 0 the true top, 2 a scan stopped at scan_limit rows of a layer before it had found fanout.
CREATE FUNCTION {schema}.recent_route(
    tenant text, level bigint, wanted_layers text[], moment timestamptz, metadata_filter jsonb,
    fanout integer, scan_limit integer, OUT ids bigint[], OUT bound integer
)
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $function$
BEGIN
    -- one ordered index scan a layer, read no further than it must
    WITH hits AS MATERIALIZED (
        SELECT wanted.layer, hit.*
          FROM unnest(wanted_layers) AS wanted(layer)
         CROSS JOIN LATERAL (
            SELECT scan.memory_id, scan.updated_at, scan.record_id
              FROM (
                SELECT *
                  FROM memories AS m
                 WHERE m.tenant_id = tenant AND m.scope_id = level AND m.layer = wanted.layer
                 ORDER BY m.updated_at DESC, m.record_id
                 LIMIT scan_limit
              ) AS scan
             WHERE is_live(scan.valid_from, scan.valid_until, scan.expires_at, moment)
               AND (metadata_filter IS NULL OR scan.metadata @> metadata_filter)
             ORDER BY scan.updated_at DESC, scan.record_id
             LIMIT fanout
         ) AS hit
    )
    SELECT ARRAY(
            SELECT hits.memory_id FROM hits
             ORDER BY hits.updated_at DESC, hits.record_id
             LIMIT fanout),
           CASE WHEN EXISTS (
                SELECT FROM unnest(wanted_layers) AS wanted(layer)
                 WHERE (SELECT count(*) FROM hits WHERE hits.layer = wanted.layer) < fanout
                   AND EXISTS (
                        SELECT FROM memories AS m
                         WHERE m.tenant_id = tenant AND m.scope_id = level AND m.layer = wanted.layer
                        OFFSET scan_limit LIMIT 1)
           ) THEN 2 ELSE 0 END
      INTO ids, bound;
END
$function$;
