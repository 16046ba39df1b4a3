-- count_pending: how many memories need a vector among the next 50,000 after a key: those that are yet to be
-- embedded, those that were tried too often, and those that the model has no vector for. Also the key where the
-- count goes on, NULL at the end. tenant NULL is everywhere, otherwise the scope and all below it.
CREATE FUNCTION {schema}.count_pending(
    tenant text, kinds text[], level_ids text[], model_number smallint, version text,
    INOUT after_tenant text, INOUT after_memory bigint, OUT waiting bigint, OUT failed bigint, OUT empty bigint
)
LANGUAGE plpgsql STABLE
SET search_path = {schema}, pg_temp
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $function$
DECLARE
    levels CONSTANT bigint[] := CASE WHEN tenant IS NOT NULL
        THEN ARRAY(SELECT below.id FROM scopes_below(tenant, kinds, level_ids) AS below(id)) END;
    window_to record;
BEGIN
    SELECT * INTO window_to FROM window_end(tenant, after_tenant, after_memory, 50000);
    SELECT count(*) FILTER (WHERE l.verdict IS NULL), count(*) FILTER (WHERE l.verdict = 'failed'),
           count(*) FILTER (WHERE l.verdict = 'empty')
      INTO waiting, failed, empty
      FROM unembedded(levels, model_number, version, after_tenant, after_memory,
                      window_to.end_tenant, window_to.end_memory) AS u
      LEFT JOIN embedding_leases AS l
        ON l.tenant_id = u.tenant_id AND l.memory_id = u.memory_id AND l.model_id = model_number
       AND l.content_hash = u.content_hash AND l.text_version = version;
    after_tenant := CASE WHEN NOT window_to.is_last THEN window_to.end_tenant END;
    after_memory := window_to.end_memory;
END
$function$;
