-- count_records: how many memories are visible at a scope, valid or not.
-- params: $1 tenant, $2 kinds, $3 level ids
SELECT count(*)
  FROM {schema}.lineage($1::text, $2::text[], $3::text[]) AS l
  JOIN {schema}.memories AS m ON m.tenant_id = $1 AND m.scope_id = l.scope_id;
