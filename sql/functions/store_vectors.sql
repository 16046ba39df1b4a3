-- store_vectors: writes what a model made of a holder's memories, each only if its text is still the one that was
-- embedded, and gives their leases back. vectors is parallel to the memories, NULL where the model has none for a
-- text: that is remembered, and an older vector of it goes. Counts those written, those without a vector, and those
-- that were changed or deleted meanwhile, which stand as pending again.
-- A memory that somebody is writing at this moment counts as changed: nothing here waits for another's transaction,
-- and the share lock keeps the text as it is until the vector is in.
CREATE FUNCTION {schema}.store_vectors(
    model_number smallint, version text, holder text,
    tenants text[], memory_ids bigint[], hashes text[], vectors text[],
    OUT stored integer, OUT empty integer, OUT changed integer
)
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, {vectors}, pg_temp
AS $function$
DECLARE
    places CONSTANT integer[] := ARRAY(
        SELECT given.place
          FROM unnest(tenants, memory_ids, hashes) WITH ORDINALITY AS given(tenant_id, memory_id, hash, place)
          JOIN memories AS m ON m.tenant_id = given.tenant_id AND m.memory_id = given.memory_id
         WHERE m.content_hash = decode(given.hash, 'hex')
         ORDER BY m.tenant_id, m.memory_id
           FOR SHARE OF m SKIP LOCKED);
BEGIN
    INSERT INTO embeddings AS e (
        tenant_id, memory_id, model_id, scope_id, layer, embedding, content_hash, text_version)
    SELECT m.tenant_id, m.memory_id, model_number, m.scope_id, m.layer, vectors[same.place]::halfvec,
           m.content_hash, version
      FROM unnest(places) AS same(place)
      JOIN memories AS m ON m.tenant_id = tenants[same.place] AND m.memory_id = memory_ids[same.place]
     WHERE vectors[same.place] IS NOT NULL
     ORDER BY m.tenant_id, m.memory_id
        ON CONFLICT (tenant_id, memory_id, model_id) DO UPDATE SET
            embedding = excluded.embedding, content_hash = excluded.content_hash,
            text_version = excluded.text_version;
    GET DIAGNOSTICS stored = ROW_COUNT;

    DELETE FROM embeddings AS e
     USING unnest(places) AS same(place)
     WHERE vectors[same.place] IS NULL AND e.tenant_id = tenants[same.place]
       AND e.memory_id = memory_ids[same.place] AND e.model_id = model_number;
    UPDATE embedding_leases AS l SET verdict = 'empty', error = NULL
      FROM unnest(places) AS same(place)
     WHERE vectors[same.place] IS NULL AND l.tenant_id = tenants[same.place]
       AND l.memory_id = memory_ids[same.place] AND l.model_id = model_number AND l.holder = store_vectors.holder;

    DELETE FROM embedding_leases AS l
     USING unnest(tenants, memory_ids) AS given(tenant_id, memory_id)
     WHERE l.tenant_id = given.tenant_id AND l.memory_id = given.memory_id AND l.model_id = model_number
       AND l.holder = store_vectors.holder AND l.verdict IS NULL;

    empty := cardinality(places) - stored;
    changed := cardinality(tenants) - cardinality(places);
END
$function$;
