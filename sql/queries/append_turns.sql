-- append_turns: adds conversation turns at a scope in the order given (functions/append_turns.sql).
-- params: $1 tenant, $2 kinds, $3 level ids, $4 turn ids, $5 turn numbers, $6 speakers, $7 texts
SELECT {schema}.append_turns($1::text, $2::text[], $3::text[], $4::text[], $5::text[]::bigint[], $6::text[], $7::text[]);
