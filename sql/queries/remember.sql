-- remember: inserts or updates a batch of records with the vectors that come along (functions/remember.sql).
-- params: $1 scope paths as JSON, $2 records as JSON, $3 vectors, $4 model or NULL, $5 version of the embedded text
SELECT place, outcome, has_vector
  FROM {schema}.remember($1::text::jsonb, $2::text::jsonb, $3::text[], $4::text, $5::text);
