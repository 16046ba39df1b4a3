-- associate: writes edges at a scope between records that are visible there (functions/associate.sql).
-- params: $1 tenant, $2 kinds, $3 level ids, $4 sources, $5 targets, $6 relationships, $7 weights
SELECT {schema}.associate($1::text, $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]::double precision[]);
