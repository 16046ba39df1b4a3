-- store_vectors: writes the vectors of claimed memories whose text is still the same (functions/store_vectors.sql).
-- params: $1 model's number, $2 version of the hook, $3 holder, $4 tenants, $5 memories, $6 content hashes, $7 vectors
SELECT stored, empty, changed
  FROM {schema}.store_vectors($1::smallint, $2::text, $3::text, $4::text[], $5::text[]::bigint[], $6::text[], $7::text[]);
