-- drop: removes a schema of the benchmark.
-- params: none
DROP SCHEMA IF EXISTS {schema} CASCADE;
