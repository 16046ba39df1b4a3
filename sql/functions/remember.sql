-- remember: inserts or updates a batch of records by record_id and stores the vectors that come with them.
-- paths are the scopes of the batch (ensure_scopes), records name theirs by ordinal; vectors is parallel to
-- records, NULL for a record without one. Returns a row a record, or, with nothing written, only the rows at
-- fault: 'elsewhere' (the record_id lies at another scope of the tenant), 'model' (no such model).
-- A record that equals what is stored, but for updated_at and usage, is not written at all.
CREATE FUNCTION {schema}.remember(paths jsonb, records jsonb, vectors text[], model_name text, version text)
RETURNS TABLE (place integer, outcome text, has_vector boolean)
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, {vectors}, pg_temp
AS $function$
#variable_conflict use_column
DECLARE
    model models;
    places integer[];
    outcomes text[];
    expected bigint;
    written_rows bigint;
BEGIN
    IF model_name IS NOT NULL THEN
        SELECT * INTO model FROM models WHERE models.name = model_name;
        IF NOT FOUND THEN
            RETURN QUERY SELECT 0, 'model', false;
            RETURN;
        END IF;
    END IF;
    IF model.model_id IS NOT NULL THEN
        -- A vector belongs to a text at a scope: neither may change between the looks below and its insert. In
        -- the order in which the insert takes its locks.
        PERFORM
           FROM (SELECT path.tenant_id, r.record_id
                   FROM jsonb_to_recordset(records) AS r(place integer, scope bigint, record_id text)
                   JOIN find_scopes(paths) AS path ON path.ordinal = r.scope
                  WHERE vectors[r.place] IS NOT NULL
                  ORDER BY path.tenant_id COLLATE "C", r.record_id COLLATE "C") AS wanted
          CROSS JOIN LATERAL (
            SELECT m.memory_id
              FROM memories AS m
             WHERE m.tenant_id = wanted.tenant_id AND m.record_id = wanted.record_id
             LIMIT 1
               FOR NO KEY UPDATE) AS locked;
    END IF;
    RETURN QUERY SELECT * FROM elsewhere(paths, records);
    IF FOUND THEN RETURN; END IF;

    BEGIN
        -- Ahead of the triggers, which would lock the levels in the order of the records.
        PERFORM note_language(spoken.tenant_id, spoken.scope_id, spoken.language)
           FROM (SELECT DISTINCT path.tenant_id, path.scope_id, r.language
                   FROM jsonb_to_recordset(records) AS r(scope bigint, language text)
                   JOIN ensure_scopes(paths) AS path ON path.ordinal = r.scope
                  WHERE r.language IS NOT NULL
                  ORDER BY 1, 2, 3) AS spoken;
        WITH incoming AS MATERIALIZED (
            SELECT path.tenant_id, path.scope_id, r.*
              FROM jsonb_to_recordset(records) AS r(
                        place integer, scope bigint, record_id text, layer text, text text, salience double precision,
                        kind text, created_at timestamptz, created_at_given boolean, updated_at timestamptz,
                        access_count bigint, last_accessed_at timestamptz, valid_from timestamptz,
                        valid_until timestamptz, expires_at timestamptz, language text, metadata jsonb,
                        content_hash text, terms text[], term_counts integer[], term_total integer)
              JOIN ensure_scopes(paths) AS path ON path.ordinal = r.scope
        ), known AS MATERIALIZED (
            SELECT i.place, m.created_at,
                   (m.scope_id, m.layer, m.text, m.salience, m.kind, m.valid_from, m.valid_until, m.expires_at, m.language,
                    m.metadata, m.terms)
                   IS NOT DISTINCT FROM
                   (i.scope_id, i.layer, i.text, i.salience, i.kind, i.valid_from, i.valid_until, i.expires_at, i.language,
                    i.metadata, i.terms)
                   AND (m.created_at = i.created_at OR NOT i.created_at_given) AS same
              FROM incoming AS i CROSS JOIN LATERAL record_of(i.tenant_id, i.record_id) AS m
        ), written AS (
            -- in one order for every batch, so that two of them cannot wait for each other
            INSERT INTO memories AS m (
                tenant_id, scope_id, layer, record_id, text, salience, kind, created_at, updated_at, access_count,
                last_accessed_at, valid_from, valid_until, expires_at, language, metadata, content_hash, terms,
                term_counts, term_total)
            SELECT i.tenant_id, i.scope_id, i.layer, i.record_id, i.text, i.salience, i.kind,
                   CASE WHEN i.created_at_given THEN i.created_at ELSE coalesce(known.created_at, i.created_at) END,
                   i.updated_at, i.access_count, i.last_accessed_at, i.valid_from, i.valid_until, i.expires_at,
                   i.language, i.metadata, decode(i.content_hash, 'hex'), i.terms, i.term_counts, i.term_total
              FROM incoming AS i LEFT JOIN known ON known.place = i.place
             WHERE known.same IS NOT TRUE
             ORDER BY i.tenant_id COLLATE "C", i.record_id COLLATE "C"
                ON CONFLICT ON CONSTRAINT memories_record DO UPDATE SET
                    layer = excluded.layer, text = excluded.text, salience = excluded.salience, kind = excluded.kind,
                    created_at = excluded.created_at, updated_at = excluded.updated_at,
                    valid_from = excluded.valid_from, valid_until = excluded.valid_until,
                    expires_at = excluded.expires_at, language = excluded.language, metadata = excluded.metadata,
                    content_hash = excluded.content_hash, terms = excluded.terms,
                    term_counts = excluded.term_counts, term_total = excluded.term_total
                WHERE m.scope_id = excluded.scope_id
            -- xmax is 0 in a row that was inserted, not updated
            RETURNING m.tenant_id, m.record_id, m.xmax = 0 AS inserted
        )
        SELECT array_agg(i.place ORDER BY i.place),
               array_agg(CASE WHEN known.same THEN 'unchanged' WHEN written.inserted THEN 'inserted'
                              ELSE 'updated' END ORDER BY i.place),
               count(*) FILTER (WHERE known.same IS NOT TRUE), count(written.record_id)
          INTO places, outcomes, expected, written_rows
          FROM incoming AS i
          LEFT JOIN known ON known.place = i.place
          LEFT JOIN written ON written.tenant_id = i.tenant_id AND written.record_id = i.record_id;
        IF written_rows <> expected THEN
            RAISE EXCEPTION 'a record_id of the batch has just come to lie at another scope' USING ERRCODE = 'SY001';
        END IF;
    EXCEPTION WHEN SQLSTATE 'SY001' THEN
        -- Another writer was faster than the check above. What was written here is undone; the caller's
        -- transaction goes on.
        RETURN QUERY SELECT * FROM elsewhere(paths, records);
        IF NOT FOUND THEN RAISE; END IF;
        RETURN;
    END;

    IF model.model_id IS NOT NULL THEN
        INSERT INTO embeddings AS e (
            tenant_id, memory_id, model_id, scope_id, layer, embedding, content_hash, text_version)
        SELECT m.tenant_id, m.memory_id, model.model_id, m.scope_id, m.layer, vectors[r.place]::halfvec,
               m.content_hash, version
          FROM jsonb_to_recordset(records) AS r(place integer, scope bigint, record_id text)
          JOIN find_scopes(paths) AS path ON path.ordinal = r.scope
         CROSS JOIN LATERAL record_of(path.tenant_id, r.record_id) AS m
         WHERE vectors[r.place] IS NOT NULL
         ORDER BY m.tenant_id, m.memory_id
            ON CONFLICT (tenant_id, memory_id, model_id) DO UPDATE SET
                embedding = excluded.embedding, content_hash = excluded.content_hash,
                text_version = excluded.text_version
            WHERE (e.embedding, e.content_hash, e.text_version)
                  IS DISTINCT FROM (excluded.embedding, excluded.content_hash, excluded.text_version);
    END IF;

    RETURN QUERY
    SELECT o.place, o.outcome,
           EXISTS (SELECT FROM embeddings AS e
                    WHERE e.tenant_id = m.tenant_id AND e.memory_id = m.memory_id
                      AND e.content_hash = m.content_hash
                      AND (model.model_id IS NULL OR (e.model_id = model.model_id AND e.text_version = version)))
      FROM unnest(places, outcomes) AS o(place, outcome)
      JOIN jsonb_to_recordset(records) AS r(place integer, scope bigint, record_id text) ON r.place = o.place
      JOIN find_scopes(paths) AS path ON path.ordinal = r.scope
     CROSS JOIN LATERAL record_of(path.tenant_id, r.record_id) AS m
     ORDER BY o.place;
END
$function$;
