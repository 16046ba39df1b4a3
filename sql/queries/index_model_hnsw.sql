-- index_model_hnsw: the HNSW index of one model, built without blocking writers; outside a transaction.
-- params: none
CREATE INDEX CONCURRENTLY IF NOT EXISTS embeddings_hnsw_{model}
    ON {schema}.embeddings USING hnsw ((embedding::{vectors}.halfvec({dimension})) {vectors}.halfvec_cosine_ops)
 WHERE model_id = {model};
