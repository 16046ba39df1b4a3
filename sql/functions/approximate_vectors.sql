-- approximate_vectors: what the model's HNSW index finds nearest at one level, by an iterative scan.
-- The statement names the model and its dimension as literals, or the partial expression index would not
-- match; sorting is switched off so that the planner cannot prefer a B-tree and a sort of the whole level.
-- hnsw.* cannot stand in a SET clause (a fresh session does not know them yet), so they are set here and put
-- back before the return: set_config would otherwise outlive the call in the caller's transaction.
-- ef_search is 400 at least: at 200, one in forty of the true twenty nearest is missed where a level is a quarter of
-- the index.
-- bound: 1 found fanout, 2 the walk stopped at walk_limit rows before it had found them.
CREATE FUNCTION {schema}.approximate_vectors(
    tenant text, level bigint, wanted_layers text[], moment timestamptz, metadata_filter jsonb,
    fanout integer, model {schema}.models, query {vectors}.halfvec, walk_limit integer, OUT ids bigint[], OUT bound integer
)
LANGUAGE plpgsql STABLE
SET enable_sort = off
SET enable_indexscan = on
AS $function$
DECLARE
    before CONSTANT text[] := ARRAY[
        current_setting('hnsw.iterative_scan'), current_setting('hnsw.ef_search'),
        current_setting('hnsw.max_scan_tuples')];
BEGIN
    PERFORM set_config('hnsw.iterative_scan', 'relaxed_order', true),
            set_config('hnsw.ef_search', least(1000, greatest(400, 4 * fanout))::text, true),
            set_config('hnsw.max_scan_tuples', (2 * walk_limit)::text, true);
    EXECUTE format(
        $statement$
            SELECT coalesce(array_agg(near.memory_id ORDER BY near.distance, near.memory_id), '{}')
              FROM (
                SELECT e.memory_id, e.embedding::halfvec(%1$s) <=> $1::halfvec(%1$s) AS distance
                  FROM embeddings AS e
                  JOIN memories AS m ON m.tenant_id = e.tenant_id AND m.memory_id = e.memory_id
                 WHERE e.model_id = %2$s AND e.tenant_id = $2 AND e.scope_id = $3 AND e.layer = ANY ($4)
                   AND is_live(m.valid_from, m.valid_until, m.expires_at, $5)
                   AND ($6 IS NULL OR m.metadata @> $6)
                 ORDER BY e.embedding::halfvec(%1$s) <=> $1::halfvec(%1$s)
                 LIMIT $7
              ) AS near
        $statement$, model.dimension, model.model_id)
       INTO ids
      USING query, tenant, level, wanted_layers, moment, metadata_filter, fanout;
    PERFORM set_config('hnsw.iterative_scan', before[1], true),
            set_config('hnsw.ef_search', before[2], true),
            set_config('hnsw.max_scan_tuples', before[3], true);
    bound := CASE WHEN cardinality(ids) < fanout THEN 2 ELSE 1 END;
END
$function$;
