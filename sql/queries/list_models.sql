-- list_models: the registered embedding models.
-- params: none
SELECT model_id, name, dimension, baseline FROM {schema}.models ORDER BY model_id;
