-- register_model: adds an embedding model if its name is new, and returns what the name stands for.
-- No row: another session has just added it; ask again.
-- params: $1 name, $2 dimension, $3 baseline
WITH added AS (
    -- the check comes first: a conflict alone would use up a number of the sequence at every call
    INSERT INTO {schema}.models (name, dimension, baseline)
    SELECT $1::text, $2::integer, $3::double precision
     WHERE NOT EXISTS (SELECT FROM {schema}.models AS m WHERE m.name = $1)
        ON CONFLICT (name) DO NOTHING
    RETURNING model_id, name, dimension, baseline
)
SELECT model_id, name, dimension, baseline FROM added
UNION ALL
SELECT m.model_id, m.name, m.dimension, m.baseline FROM {schema}.models AS m WHERE m.name = $1;
