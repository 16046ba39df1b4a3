-- fail_pending: notes why a holder's memories could not be embedded, and sets aside those tried often enough; counts
-- these. The others are tried again when their lease has run out. With $7 all are tried again at once, each alone.
-- params: $1 model's number, $2 holder, $3 tenants, $4 memories, $5 error, $6 attempts allowed, $7 try again at once
WITH noted AS (
    UPDATE {schema}.embedding_leases AS l
       SET error = $5::text,
           verdict = CASE WHEN l.attempts >= $6::integer AND NOT $7::boolean THEN 'failed' END,
           leased_until = CASE WHEN $7 THEN now() ELSE l.leased_until END
      FROM unnest($3::text[], $4::text[]::bigint[]) AS given(tenant_id, memory_id)
     WHERE l.tenant_id = given.tenant_id AND l.memory_id = given.memory_id AND l.model_id = $1::smallint
       AND l.holder = $2::text
    RETURNING l.verdict
)
SELECT count(noted.verdict) FROM noted;
