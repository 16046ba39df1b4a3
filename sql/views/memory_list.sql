-- memory_list: one row a memory, for people who read; key is unique, since a tenant's text form holds no slash.
-- The join with nothing makes the view read-only and costs nothing. Uses of all scopes are counted together, as
-- no query of the store does; what is not selected is not computed.
CREATE VIEW {schema}.memory_list WITH (security_invoker = true) AS
SELECT m.tenant_id || '/' || m.record_id AS key,
       m.tenant_id, m.memory_id, m.scope_id, {schema}.scope_text(m.tenant_id, m.scope_id) AS scope,
       m.record_id, m.layer, m.kind, left(m.text, 200) AS preview, m.text, m.salience, m.language, m.metadata,
       m.created_at, m.updated_at, m.valid_from, m.valid_until, m.expires_at,
       m.access_count + coalesce((
            SELECT sum(u.access_count) FROM {schema}.usage AS u
             WHERE u.tenant_id = m.tenant_id AND u.memory_id = m.memory_id), 0)::bigint AS uses,
       greatest(m.last_accessed_at, (
            SELECT max(u.last_accessed_at) FROM {schema}.usage AS u
             WHERE u.tenant_id = m.tenant_id AND u.memory_id = m.memory_id)) AS last_used_at,
       (SELECT string_agg(o.name, ', ' ORDER BY o.name)
          FROM {schema}.embeddings AS e JOIN {schema}.models AS o ON o.model_id = e.model_id
         WHERE e.tenant_id = m.tenant_id AND e.memory_id = m.memory_id) AS embedded_by
  FROM {schema}.memories AS m CROSS JOIN (SELECT) AS read_only;
