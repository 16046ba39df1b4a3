-- move_records: takes records from exactly one scope to another of the same tenant, creating it where it is missing.
CREATE FUNCTION {schema}.move_records(
    tenant text, kinds text[], level_ids text[], record_ids text[], to_kinds text[], to_level_ids text[]
) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, pg_temp
AS $function$
DECLARE
    moving CONSTANT bigint[] := ARRAY(
        SELECT m.memory_id
          FROM memories AS m
         WHERE m.tenant_id = tenant AND m.record_id = ANY (record_ids)
           -- not =, which could make the whole scope the way to its records
           AND m.scope_id IS NOT DISTINCT FROM (
                SELECT l.scope_id FROM lineage(tenant, kinds, level_ids) AS l WHERE l.distance = 0)
         ORDER BY m.memory_id
           FOR UPDATE OF m);
BEGIN
    IF moving <> '{}' THEN
        UPDATE memories AS m SET scope_id = there.scope_id
          FROM ensure_scope(tenant, to_kinds, to_level_ids) AS there(scope_id)
         WHERE m.tenant_id = tenant AND m.memory_id = ANY (moving);
    END IF;
    RETURN cardinality(moving);
END
$function$;
