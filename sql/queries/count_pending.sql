-- count_pending: how many of the next 50,000 memories need a vector, and where to go on (functions/count_pending.sql).
-- params: $1 tenant or NULL, $2 kinds, $3 level ids, $4 model's number, $5 version of the hook, $6 tenant and $7 memory to go on after
SELECT after_tenant, after_memory, waiting, failed, empty
  FROM {schema}.count_pending($1::text, $2::text[], $3::text[], $4::smallint, $5::text, $6::text, $7::bigint);
