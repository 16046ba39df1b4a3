-- find_embedded: the places of those texts that have a vector of a model already, made from the same text in the same
-- way.
-- params: $1 tenants, $2 record ids, $3 content hashes in hex, $4 model, $5 version of the embedded text
SELECT given.place
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS given(tenant, record_id, content_hash, place)
  JOIN {schema}.models AS model ON model.name = $4::text
  JOIN {schema}.memories AS m ON m.tenant_id = given.tenant AND m.record_id = given.record_id
  JOIN {schema}.embeddings AS e
    ON e.tenant_id = m.tenant_id AND e.memory_id = m.memory_id AND e.model_id = model.model_id
 WHERE e.content_hash = decode(given.content_hash, 'hex') AND e.text_version = $5::text;
