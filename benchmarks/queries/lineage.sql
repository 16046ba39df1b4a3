-- lineage: the numbers of the levels that a scope sees.
-- params: $1 tenant, $2 kinds, $3 level ids
SELECT array_agg(l.scope_id) FROM {schema}.lineage($1::text, $2::text[], $3::text[]) AS l;
