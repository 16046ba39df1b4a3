-- vector_route: the live memories of one level nearest to a query vector by cosine, at most fanout of them.
-- Exact up to exact_limit vectors: the level's narrow rows are compared one by one, a few from the table, by a plan
-- that is kept, and many from the model's covering index, which takes planning. Above it the model's HNSW
-- index answers (approximate_vectors), unless the level is too small a part of that index for a walk to find
-- it, or there is no index: then the scan stays exact up to far_limit.
-- bound: 0 the true top, 1 an index may have missed some, 2 stopped at a bound before it could know.
CREATE FUNCTION {schema}.vector_route(
    tenant text, level bigint, wanted_layers text[], moment timestamptz, metadata_filter jsonb,
    fanout integer, model {schema}.models, query {vectors}.halfvec, OUT ids bigint[], OUT bound integer
)
LANGUAGE plpgsql STABLE
AS $function$
DECLARE
    few CONSTANT integer := 500;
    exact_limit CONSTANT integer := 15000;
    far_limit CONSTANT integer := 100000;
    -- rows an index walk may visit for one answer: pgvector's own default for hnsw.max_scan_tuples
    walk_limit CONSTANT integer := 20000;
    indexed real;
    present integer;
    reach integer;
BEGIN
    present := count_vectors(tenant, level, wanted_layers, model.model_id, exact_limit + 1);
    IF present > exact_limit THEN
        SELECT class.reltuples INTO indexed
          FROM pg_index JOIN pg_class AS class ON class.oid = pg_index.indexrelid
         WHERE class.oid = to_regclass(format('embeddings_hnsw_%s', model.model_id))
           AND pg_index.indisvalid;
        IF indexed IS NULL OR fanout * indexed / present > walk_limit THEN
            present := count_vectors(tenant, level, wanted_layers, model.model_id, far_limit + 1);
        END IF;
        IF indexed IS NOT NULL AND (present > far_limit OR fanout * indexed / present <= walk_limit) THEN
            SELECT near.ids, near.bound INTO ids, bound
              FROM approximate_vectors(tenant, level, wanted_layers, moment, metadata_filter,
                                       fanout, model, query, walk_limit) AS near;
            RETURN;
        END IF;
    END IF;

    -- Most memories are live, so the nearest few times fanout nearly always hold the answer; a metadata
    -- filter may reject any number, so the whole level is put in order for it.
    reach := CASE WHEN metadata_filter IS NULL THEN least(4 * fanout, far_limit) ELSE far_limit END;
    LOOP
        IF present <= few THEN
            ids := ARRAY(
                SELECT near.memory_id
                  FROM (
                    SELECT e.memory_id, e.embedding <=> query AS distance
                      FROM embeddings AS e
                     WHERE e.model_id = model.model_id AND e.tenant_id = tenant AND e.scope_id = level
                       AND e.layer = ANY (wanted_layers)
                     ORDER BY distance, e.memory_id
                     LIMIT reach
                  ) AS near
                 CROSS JOIN LATERAL memory_of(tenant, near.memory_id) AS m
                 WHERE is_live(m.valid_from, m.valid_until, m.expires_at, moment)
                   AND (metadata_filter IS NULL OR m.metadata @> metadata_filter)
                 ORDER BY near.distance, near.memory_id
                 LIMIT fanout);
        ELSE
            -- the model as a literal: only then does its covering partial index match
            EXECUTE format(
                $statement$
                    SELECT ARRAY(
                        SELECT near.memory_id
                          FROM (
                            SELECT scan.memory_id, scan.embedding <=> $1 AS distance
                              FROM (
                                SELECT e.memory_id, e.embedding
                                  FROM embeddings AS e
                                 WHERE e.model_id = %s AND e.tenant_id = $2 AND e.scope_id = $3 AND e.layer = ANY ($4)
                                 %s
                              ) AS scan
                             ORDER BY distance, scan.memory_id
                             LIMIT $8
                          ) AS near
                         CROSS JOIN LATERAL memory_of($2, near.memory_id) AS m
                         WHERE is_live(m.valid_from, m.valid_until, m.expires_at, $5)
                           AND ($6 IS NULL OR m.metadata @> $6)
                         ORDER BY near.distance, near.memory_id
                         LIMIT $7)
                $statement$, model.model_id, CASE WHEN present > far_limit THEN 'LIMIT ' || far_limit END)
               INTO ids
              USING query, tenant, level, wanted_layers, moment, metadata_filter, fanout, reach;
        END IF;
        EXIT WHEN cardinality(ids) = fanout OR reach >= least(present, far_limit);
        reach := far_limit;
    END LOOP;
    bound := CASE WHEN present > far_limit THEN 2 ELSE 0 END;
END
$function$;
