-- claim_pending: takes the next memories that need a vector for a holder, until the lease has run out, and
-- returns them as records. Goes on from a key, in key order, at most `batch` memories and most_looked keys a call.
-- The first row says how far it has come, NULL at the end; every other row is a memory that is the holder's now.
-- tenant NULL is everywhere, otherwise the scope and all below it.
--
-- No lock outlives the call. Of two workers that find the same memory one waits for the other's statement, then
-- sees its lease and gets nothing. A memory that was tried before is taken alone: if its text makes a batch fail,
-- or its worker, no other text suffers again. One that was tried max_attempts times without an answer is set aside.
CREATE FUNCTION {schema}.claim_pending(
    tenant text, kinds text[], level_ids text[], model_number smallint, version text,
    after_tenant text, after_memory bigint, batch integer, holder text, lease interval, max_attempts integer
) RETURNS TABLE (
    tenant_id text, memory_id bigint, content_hash text, attempts integer, scope_kinds text[], scope_ids text[],
    record_id text, layer text, text text, salience double precision, kind text, created_at timestamptz,
    updated_at timestamptz, access_count bigint, last_accessed_at timestamptz, valid_from timestamptz,
    valid_until timestamptz, expires_at timestamptz, language text, metadata text
)
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, pg_temp
-- plans are made for the very keys; a range of them is read from its index and nowhere else
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $function$
#variable_conflict use_column
DECLARE
    most_looked CONSTANT integer := 50000;
    widest CONSTANT integer := 10000;
    levels CONSTANT bigint[] := CASE WHEN tenant IS NOT NULL
        THEN ARRAY(SELECT below.id FROM scopes_below(tenant, kinds, level_ids) AS below(id)) END;
    looked integer := 0;
    reach integer := batch;
    taken integer := 0;
    window_to record;
    tenants text[] := '{}';
    found_ids bigint[];
    tried integer[];
BEGIN
    LOOP
        SELECT * INTO window_to FROM window_end(tenant, after_tenant, after_memory, reach);
        IF window_to.end_tenant IS NULL THEN
            after_tenant := NULL;
            after_memory := NULL;
            EXIT;
        END IF;
        SELECT coalesce(array_agg(p.tenant_id), '{}'), array_agg(p.memory_id), array_agg(coalesce(p.attempts, 0))
          INTO tenants, found_ids, tried
          FROM (
            SELECT u.tenant_id, u.memory_id, l.attempts
              FROM unembedded(levels, model_number, version, after_tenant, after_memory,
                              window_to.end_tenant, window_to.end_memory) AS u
              LEFT JOIN embedding_leases AS l
                ON l.tenant_id = u.tenant_id AND l.memory_id = u.memory_id AND l.model_id = model_number
               AND l.content_hash = u.content_hash AND l.text_version = version
             WHERE l.memory_id IS NULL OR (l.verdict IS NULL AND l.leased_until <= now())
             ORDER BY u.tenant_id, u.memory_id
             LIMIT batch
          ) AS p;
        SELECT coalesce(min(greatest(1, t.place - 1)), cardinality(tenants)) INTO taken
          FROM unnest(tried) WITH ORDINALITY AS t(attempts, place)
         WHERE t.attempts > 0;
        looked := looked + reach;
        IF taken < cardinality(tenants) OR taken = batch THEN
            after_tenant := tenants[taken];
            after_memory := found_ids[taken];
        ELSIF window_to.is_last THEN
            after_tenant := NULL;
            after_memory := NULL;
        ELSE
            after_tenant := window_to.end_tenant;
            after_memory := window_to.end_memory;
        END IF;
        EXIT WHEN taken > 0 OR after_tenant IS NULL OR looked >= most_looked;
        -- the fewer there are the wider it looks
        reach := least(4 * reach, widest);
    END LOOP;

    RETURN QUERY SELECT after_tenant, after_memory, NULL, NULL::integer, NULL::text[], NULL::text[], NULL, NULL, NULL,
                        NULL::double precision, NULL, NULL::timestamptz, NULL::timestamptz, NULL::bigint,
                        NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL, NULL;
    IF taken = 1 AND tried[1] >= max_attempts THEN
        UPDATE embedding_leases AS l
           SET verdict = 'failed', error = coalesce(l.error, 'every worker that took it ended before it was done')
         WHERE l.tenant_id = tenants[1] AND l.memory_id = found_ids[1] AND l.model_id = model_number
           AND l.verdict IS NULL AND l.leased_until <= now();
        RETURN;
    END IF;

    INSERT INTO embedding_leases AS l (
        tenant_id, memory_id, model_id, content_hash, text_version, holder, leased_at, leased_until, attempts)
    SELECT m.tenant_id, m.memory_id, model_number, m.content_hash, version, holder, now(), now() + lease,
           t.attempts + 1
      FROM unnest(tenants[:taken], found_ids[:taken], tried[:taken]) AS t(tenant_id, memory_id, attempts)
      JOIN memories AS m ON m.tenant_id = t.tenant_id AND m.memory_id = t.memory_id
     ORDER BY m.tenant_id, m.memory_id
        ON CONFLICT (tenant_id, memory_id, model_id) DO UPDATE SET
            content_hash = excluded.content_hash, text_version = excluded.text_version,
            holder = excluded.holder, leased_at = excluded.leased_at, leased_until = excluded.leased_until,
            attempts = excluded.attempts, verdict = NULL,
            error = CASE WHEN excluded.attempts > 1 THEN l.error END
        WHERE (l.content_hash, l.text_version) IS DISTINCT FROM (excluded.content_hash, excluded.text_version)
           OR (l.verdict IS NULL AND l.leased_until <= now());
    -- whoever had one of them may have finished, lease and all, while this one was looking
    DELETE FROM embedding_leases AS l
     USING unnest(tenants[:taken], found_ids[:taken]) AS t(tenant_id, memory_id), embeddings AS e
     WHERE l.tenant_id = t.tenant_id AND l.memory_id = t.memory_id AND l.model_id = model_number
       AND l.holder = claim_pending.holder
       AND e.tenant_id = t.tenant_id AND e.memory_id = t.memory_id AND e.model_id = model_number
       AND e.content_hash = l.content_hash AND e.text_version = version;

    RETURN QUERY
    SELECT m.tenant_id, m.memory_id, encode(m.content_hash, 'hex'), l.attempts, path.kinds, path.level_ids,
           m.record_id, m.layer, m.text, m.salience, m.kind, m.created_at, m.updated_at, m.access_count,
           m.last_accessed_at, m.valid_from, m.valid_until, m.expires_at, m.language, m.metadata::text
      FROM unnest(tenants[:taken], found_ids[:taken]) AS t(tenant_id, memory_id)
      JOIN embedding_leases AS l
        ON l.tenant_id = t.tenant_id AND l.memory_id = t.memory_id AND l.model_id = model_number
       AND l.holder = claim_pending.holder
      JOIN memories AS m ON m.tenant_id = t.tenant_id AND m.memory_id = t.memory_id
     CROSS JOIN LATERAL scope_path(m.tenant_id, m.scope_id) AS path
     ORDER BY m.tenant_id, m.memory_id;
END
$function$;
