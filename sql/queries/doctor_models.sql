-- doctor_models: name, number and dimension of each embedding model, how many vectors it has (counting stops at
-- 20,001), and the names of its indexes that are there and can be used.
-- params: none
SELECT m.name, m.model_id::integer, m.dimension,
       (SELECT count(*) FROM (SELECT FROM {schema}.embeddings AS e WHERE e.model_id = m.model_id LIMIT 20001) AS counted),
       ARRAY(SELECT c.relname::text
               FROM pg_catalog.pg_index AS i
               JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
              WHERE i.indrelid = to_regclass('{schema}.embeddings') AND i.indisvalid
                AND c.relname IN ('embeddings_hnsw_' || m.model_id, 'embeddings_level_' || m.model_id))
  FROM {schema}.models AS m
 ORDER BY m.name
