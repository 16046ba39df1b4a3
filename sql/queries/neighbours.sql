-- neighbours: the visible edges out of some records between visible ends, strongest first (functions/neighbours.sql).
-- params: $1 tenant, $2 kinds, $3 level ids, $4 record ids, $5 edge limit
SELECT *
  FROM {schema}.neighbours($1::text, $2::text[], $3::text[], $4::text[], $5::integer);
