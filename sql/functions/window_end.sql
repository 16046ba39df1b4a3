-- window_end: the key of the memory that stands `reach` places after a key, or of the last one, and whether that
-- is the last; NULL where none follows. tenant NULL is everywhere.
CREATE FUNCTION {schema}.window_end(
    tenant text, after_tenant text, after_memory bigint, reach integer,
    OUT end_tenant text, OUT end_memory bigint, OUT is_last boolean
)
LANGUAGE plpgsql STABLE
SET search_path = {schema}, pg_temp
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $function$
BEGIN
    is_last := false;
    SELECT m.tenant_id, m.memory_id INTO end_tenant, end_memory
      FROM memories AS m
     WHERE (m.tenant_id, m.memory_id) > (after_tenant, after_memory)
       AND (tenant IS NULL OR m.tenant_id = tenant)
     ORDER BY m.tenant_id, m.memory_id
    OFFSET reach - 1 LIMIT 1;
    IF NOT FOUND THEN
        is_last := true;
        SELECT m.tenant_id, m.memory_id INTO end_tenant, end_memory
          FROM memories AS m
         WHERE (m.tenant_id, m.memory_id) > (after_tenant, after_memory)
           AND (tenant IS NULL OR m.tenant_id = tenant)
         ORDER BY m.tenant_id DESC, m.memory_id DESC
         LIMIT 1;
    END IF;
END
$function$;
