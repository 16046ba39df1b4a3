-- prepare_load: makes the scopes of a bulk load and hands out the keys of its new rows (functions/prepare_load.sql).
-- params: $1 scope paths as JSON, $2 ordinal of each record's path, $3 record ids, $4 model or NULL
SELECT place, scope_id, memory_id, model_id
  FROM {schema}.prepare_load($1::text::jsonb, $2::text[]::integer[], $3::text[], $4::text);
