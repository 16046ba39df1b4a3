-- unembedded: the memories between two keys (the first left out, the second not) that have no vector of a model, or
-- a stale one: of another text, or of another version of the hook that shapes it. scopes NULL is every level.
-- Two ranges of the primary keys, which cover what is asked, subtracted: a join would leave it to the planner's
-- guesses whether it probes 10,000 times, hashes all vectors or walks the wrong index. It has no idea how many rows
-- lie between two pairs, but knows numbers: within one tenant the range is one of memory_id.
CREATE FUNCTION {schema}.unembedded(
    scopes bigint[], model_number smallint, version text,
    after_tenant text, after_memory bigint, end_tenant text, end_memory bigint
) RETURNS TABLE (tenant_id text, memory_id bigint, content_hash bytea)
LANGUAGE sql STABLE
AS $function$
    SELECT m.tenant_id, m.memory_id, m.content_hash
      FROM {schema}.memories AS m
     WHERE ((after_tenant = end_tenant
             AND m.tenant_id = end_tenant AND m.memory_id > after_memory AND m.memory_id <= end_memory)
            OR (after_tenant <> end_tenant
                AND (m.tenant_id, m.memory_id) > (after_tenant, after_memory)
                AND (m.tenant_id, m.memory_id) <= (end_tenant, end_memory)))
       AND (scopes IS NULL OR m.scope_id = ANY (scopes))
    EXCEPT ALL
    SELECT e.tenant_id, e.memory_id, e.content_hash
      FROM {schema}.embeddings AS e
     WHERE ((after_tenant = end_tenant
             AND e.tenant_id = end_tenant AND e.memory_id > after_memory AND e.memory_id <= end_memory)
            OR (after_tenant <> end_tenant
                AND (e.tenant_id, e.memory_id) > (after_tenant, after_memory)
                AND (e.tenant_id, e.memory_id) <= (end_tenant, end_memory)))
       AND e.model_id = model_number AND e.text_version = version
$function$;
