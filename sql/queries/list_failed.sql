-- list_failed: the memories that a model could not embed and that are not tried again until their text changes, in
-- key order after a key: those that failed too often and, if asked for, those that it has no vector for.
-- params: $1 tenant or NULL, $2 kinds, $3 level ids, $4 model's number, $5 version of the hook, $6 tenant and $7 memory to go on after, $8 with those it has no vector for, $9 limit
SELECT m.tenant_id, m.memory_id, path.kinds, path.level_ids, m.record_id, l.verdict, l.attempts, l.error, l.leased_at
  FROM {schema}.embedding_leases AS l
  JOIN {schema}.memories AS m ON m.tenant_id = l.tenant_id AND m.memory_id = l.memory_id
 CROSS JOIN LATERAL {schema}.scope_path(m.tenant_id, m.scope_id) AS path
 WHERE (l.tenant_id, l.memory_id) > ($6::text, $7::bigint)
   AND (l.verdict = 'failed' OR (l.verdict = 'empty' AND $8::boolean))
   AND l.model_id = $4::smallint AND l.text_version = $5::text AND l.content_hash = m.content_hash
   AND ($1::text IS NULL
        OR (l.tenant_id = $1 AND m.scope_id IN (SELECT {schema}.scopes_below($1, $2::text[], $3::text[]))))
   AND NOT EXISTS (
        SELECT FROM {schema}.embeddings AS e
         WHERE e.tenant_id = m.tenant_id AND e.memory_id = m.memory_id AND e.model_id = l.model_id
           AND e.content_hash = m.content_hash AND e.text_version = l.text_version)
 ORDER BY l.tenant_id, l.memory_id
 LIMIT $9::integer;
