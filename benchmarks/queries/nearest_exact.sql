-- nearest_exact: the nearest live memories at some scopes, by the narrow rows alone; what an expert would write who
-- knows the scopes, the model and that few memories are expired.
-- params: $1 query vector, $2 moment
SELECT m.record_id, m.text, near.distance
  FROM (
    SELECT e.memory_id, e.embedding <=> $1::text::halfvec AS distance
      FROM {schema}.embeddings AS e
     WHERE e.model_id = {model} AND e.tenant_id = '{tenant}' AND e.scope_id = ANY ('{scopes}'::bigint[])
     ORDER BY distance
     LIMIT 2 * {limit}
  ) AS near
  JOIN {schema}.memories AS m ON m.tenant_id = '{tenant}' AND m.memory_id = near.memory_id
 WHERE {schema}.is_live(m.valid_from, m.valid_until, m.expires_at, $2::timestamptz)
 ORDER BY near.distance
 LIMIT {limit};
