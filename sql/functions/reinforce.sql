-- reinforce: counts one use, at a scope, of each record that is visible there.
CREATE FUNCTION {schema}.reinforce(tenant text, kinds text[], level_ids text[], record_ids text[], moment timestamptz)
RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, pg_temp
AS $function$
DECLARE
    used CONSTANT bigint[] := ARRAY(
        SELECT m.memory_id
          FROM unnest(record_ids) AS asked(record_id)
         CROSS JOIN LATERAL record_of(tenant, asked.record_id) AS m
          JOIN lineage(tenant, kinds, level_ids) AS l ON l.scope_id = m.scope_id
         ORDER BY m.memory_id);
BEGIN
    IF used <> '{}' THEN
        INSERT INTO usage AS u (tenant_id, memory_id, scope_id, access_count, last_accessed_at)
        SELECT tenant, one.memory_id, here.scope_id, 1, moment
          FROM ensure_scope(tenant, kinds, level_ids) AS here(scope_id)
         CROSS JOIN unnest(used) AS one(memory_id)
            ON CONFLICT (tenant_id, memory_id, scope_id) DO UPDATE SET
                access_count = u.access_count + 1,
                last_accessed_at = greatest(u.last_accessed_at, excluded.last_accessed_at);
    END IF;
    RETURN cardinality(used);
END
$function$;
