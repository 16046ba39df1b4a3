-- reinforce: counts one use, at a scope, of each record that is visible there (functions/reinforce.sql).
-- params: $1 tenant, $2 kinds, $3 level ids, $4 record ids, $5 moment
SELECT {schema}.reinforce($1::text, $2::text[], $3::text[], $4::text[], $5::timestamptz);
