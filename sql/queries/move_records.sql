-- move_records: takes records from exactly one scope to another of the same tenant (functions/move_records.sql).
-- params: $1 tenant, $2 kinds, $3 level ids, $4 record ids, $5 kinds and $6 level ids of the new scope
SELECT {schema}.move_records($1::text, $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]);
