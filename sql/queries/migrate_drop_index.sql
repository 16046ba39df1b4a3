-- migrate_drop_index: drop an index without blocking writers; outside a transaction.
-- params: none
DROP INDEX CONCURRENTLY IF EXISTS {schema}.{index}
