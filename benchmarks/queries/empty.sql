-- empty: the tables without their rows, the scopes excepted.
-- params: none
TRUNCATE {schema}.memories, {schema}.postings, {schema}.embeddings CASCADE;
