-- retry_failed: makes memories that were set aside pending again, and counts them.
-- params: $1 tenant or NULL, $2 kinds, $3 level ids, $4 model's number, $5 only these record ids or NULL
WITH again AS (
    DELETE FROM {schema}.embedding_leases AS l
     USING {schema}.memories AS m
     WHERE l.verdict IS NOT NULL AND l.model_id = $4::smallint
       AND m.tenant_id = l.tenant_id AND m.memory_id = l.memory_id
       AND ($5::text[] IS NULL OR m.record_id = ANY ($5))
       AND ($1::text IS NULL
            OR (l.tenant_id = $1 AND m.scope_id IN (SELECT {schema}.scopes_below($1, $2::text[], $3::text[]))))
    RETURNING l.memory_id
)
SELECT count(*) FROM again;
