-- claim_pending: takes the next memories that need a vector, for as long as a lease lasts (functions/claim_pending.sql).
-- params: $1 tenant or NULL, $2 kinds, $3 level ids, $4 model's number, $5 version of the hook, $6 tenant and $7 memory to go on after, $8 batch size, $9 holder, $10 seconds of the lease, $11 attempts allowed
SELECT *
  FROM {schema}.claim_pending($1::text, $2::text[], $3::text[], $4::smallint, $5::text, $6::text, $7::bigint,
                              $8::integer, $9::text, make_interval(secs => $10::double precision), $11::integer);
