-- exact: the {limit} nearest live memories at some scopes, all that are equally near as the last included; by a
-- sequential scan of the stored halves.
-- params: $1 scope numbers, $2 query vector, $3 moment
SELECT m.record_id
  FROM {schema}.embeddings AS e
  JOIN {schema}.memories AS m ON m.tenant_id = e.tenant_id AND m.memory_id = e.memory_id
 WHERE e.model_id = {model} AND e.scope_id = ANY ($1::bigint[])
   AND {schema}.is_live(m.valid_from, m.valid_until, m.expires_at, $3::timestamptz)
 ORDER BY e.embedding <=> $2::text::halfvec
 FETCH FIRST {limit} ROWS WITH TIES;
