-- vacuum: what autovacuum would do a little later.
-- params: none
VACUUM (ANALYZE) {table};
