-- release_pending: gives a holder's memories back as if it had never taken them, and counts them.
-- params: $1 model's number, $2 holder, $3 tenants, $4 memories
WITH held AS MATERIALIZED (
    SELECT l.tenant_id, l.memory_id, l.attempts
      FROM unnest($3::text[], $4::text[]::bigint[]) AS given(tenant_id, memory_id)
      JOIN {schema}.embedding_leases AS l
        ON l.tenant_id = given.tenant_id AND l.memory_id = given.memory_id AND l.model_id = $1::smallint
     WHERE l.holder = $2::text AND l.verdict IS NULL
     ORDER BY l.tenant_id, l.memory_id
       FOR UPDATE OF l
), gone AS (
    DELETE FROM {schema}.embedding_leases AS l
     USING held
     WHERE held.attempts = 1
       AND l.tenant_id = held.tenant_id AND l.memory_id = held.memory_id AND l.model_id = $1
), back AS (
    UPDATE {schema}.embedding_leases AS l SET attempts = l.attempts - 1, leased_until = now()
      FROM held
     WHERE held.attempts > 1
       AND l.tenant_id = held.tenant_id AND l.memory_id = held.memory_id AND l.model_id = $1
)
SELECT count(*) FROM held;
