-- search: everything plausible at a scope, with what was observed (functions/search.sql).
-- params: $1 tenant, $2 kinds, $3 level ids, $4 layers, $5 moment, $6 metadata filter or NULL, $7 fanout, $8 model or NULL, $9 query vector or NULL, $10 store's language, $11 languages and $12 terms of the cue, $13 context record ids, $14 only these record ids or NULL
SELECT *
  FROM {schema}.search($1::text, $2::text[], $3::text[], $4::text[], $5::timestamptz, $6::text::jsonb, $7::integer,
                       $8::text, $9::text, $10::text, $11::text[], $12::text[], $13::text[], $14::text[]);
