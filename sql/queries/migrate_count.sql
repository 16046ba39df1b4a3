-- migrate_count: how many rows a table has, counted to 10,001.
-- params: none
SELECT count(*) FROM (SELECT FROM {schema}.{table} LIMIT 10001) AS first
