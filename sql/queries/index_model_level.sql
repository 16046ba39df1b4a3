-- index_model_level: the index of one model that covers the exact scan of a level, for vectors that fit a B-tree
-- row (up to 1,200 dimensions); built without blocking writers, outside a transaction.
-- params: none
CREATE INDEX CONCURRENTLY IF NOT EXISTS embeddings_level_{model}
    ON {schema}.embeddings (tenant_id, scope_id, layer) INCLUDE (memory_id, embedding)
 WHERE model_id = {model};
