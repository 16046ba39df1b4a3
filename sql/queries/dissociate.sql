-- dissociate: deletes edges that lie exactly at a scope (functions/dissociate.sql).
-- params: $1 tenant, $2 kinds, $3 level ids, $4 sources, $5 targets, $6 relationships
SELECT {schema}.dissociate($1::text, $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]);
