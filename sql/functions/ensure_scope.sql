-- ensure_scope: the number of a scope, creating the levels of its path that are missing.
-- Two writers may create the same level at once: the later one waits, inserts nothing and finds the other's row.
CREATE FUNCTION {schema}.ensure_scope(tenant text, kinds text[], level_ids text[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, pg_temp
AS $function$
DECLARE
    nearest bigint;
    depth integer := 0;
BEGIN
    LOOP
        SELECT l.scope_id, cardinality(kinds) - l.distance INTO nearest, depth
          FROM lineage(tenant, kinds, level_ids) AS l
         ORDER BY l.distance
         LIMIT 1;
        depth := coalesce(depth, 0);
        EXIT WHEN depth = cardinality(kinds);
        INSERT INTO scopes (tenant_id, parent_id, kind, level_id, depth)
        VALUES (tenant, nearest, kinds[depth + 1], level_ids[depth + 1], depth + 1)
            ON CONFLICT ON CONSTRAINT scopes_path DO NOTHING;
    END LOOP;
    RETURN nearest;
END
$function$;
