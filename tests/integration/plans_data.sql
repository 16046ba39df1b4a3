-- A thousand tenants with three memories each, and one with 19,400: 16,000 at its organisation (an index answers),
-- 3,000 at a user (an exact scan answers), 400 at a session, and nothing at its thousands of other sessions.
SET search_path = symfonic, public;

-- VACUUM marks no page as visible to all while its rows' commit is not flushed yet
SET synchronous_commit = on;

SELECT ensure_scope('org:t' || i, ARRAY['org'], ARRAY['t' || i]) FROM generate_series(1, 1000) AS i;
SELECT ensure_scope('org:big', ARRAY['org', 'user', 'session'], ARRAY['big', 'u', 's' || i])
  FROM generate_series(1, 3000) AS i;
SELECT ensure_scope('org:big', ARRAY['org', 'user', 'session'], ARRAY['big', 'u', 's']);

CREATE TEMPORARY TABLE laid AS
SELECT s.tenant_id, s.scope_id, row_number() OVER (ORDER BY md5(n::text || s.scope_id)) AS number
  FROM scopes AS s
 CROSS JOIN LATERAL generate_series(1, CASE
        WHEN s.tenant_id <> 'org:big' THEN 3
        WHEN s.depth = 1 THEN 16000 WHEN s.depth = 2 THEN 3000 WHEN s.level_id = 's' THEN 400 ELSE 0 END) AS n;

INSERT INTO memories (
    tenant_id, scope_id, layer, record_id, text, salience, kind, created_at, updated_at, content_hash, terms,
    term_counts, term_total)
SELECT tenant_id, scope_id, (ARRAY['semantic', 'episodic', 'procedural', 'prospective'])[1 + number % 4],
       'm' || number, 'text ' || number, CASE WHEN number % 3 = 0 THEN number % 100 / 100.0 END,
       CASE WHEN number % 500 = 0 THEN 'profile' ELSE '' END, now(), now() - number * interval '1 minute',
       sha256(number::text::bytea), ARRAY['common', 't' || number % 50, 'u' || number % 700], ARRAY[1, 1, 1], 3
  FROM laid ORDER BY number;

INSERT INTO embeddings (tenant_id, memory_id, model_id, scope_id, layer, embedding, content_hash)
SELECT tenant_id, memory_id, 1, scope_id, layer,
       ARRAY(SELECT sin(memory_id * k) FROM generate_series(1, 8) AS k)::real[]::halfvec, content_hash
  FROM memories;

-- a hub with 10,000 edges in each direction
UPDATE memories SET record_id = 'hub'
 WHERE (tenant_id, memory_id) = (SELECT tenant_id, memory_id FROM memories WHERE tenant_id = 'org:big' ORDER BY memory_id LIMIT 1);

INSERT INTO associations (tenant_id, source_id, scope_id, target_id, relationship, weight)
SELECT hub.tenant_id, pair.source_id, hub.scope_id, pair.target_id, 'near', 0.5 + m.memory_id % 50 / 100.0
  FROM (SELECT * FROM memories WHERE tenant_id = 'org:big' AND record_id = 'hub') AS hub
  JOIN LATERAL (SELECT * FROM memories AS o WHERE o.tenant_id = hub.tenant_id AND o.memory_id <> hub.memory_id
                 ORDER BY o.memory_id LIMIT 10000) AS m ON true
 CROSS JOIN LATERAL (VALUES (hub.memory_id, m.memory_id), (m.memory_id, hub.memory_id)) AS pair(source_id, target_id);

INSERT INTO turns (tenant_id, scope_id, turn_id, turn, speaker, text)
SELECT s.tenant_id, s.scope_id, 't' || i, i, 'user', 'said ' || i
  FROM scopes AS s CROSS JOIN generate_series(1, 10000) AS i
 WHERE s.tenant_id = 'org:big' AND s.level_id = 's';

-- the five newest memories of the organisation were used at every scope of it
INSERT INTO usage (tenant_id, memory_id, scope_id, access_count, last_accessed_at)
SELECT m.tenant_id, m.memory_id, s.scope_id, 1, now()
  FROM (SELECT newest.tenant_id, newest.memory_id
          FROM memories AS newest JOIN scopes AS org USING (tenant_id, scope_id)
         WHERE newest.tenant_id = 'org:big' AND org.depth = 1
         ORDER BY newest.updated_at DESC LIMIT 5) AS m
  JOIN scopes AS s USING (tenant_id);

DROP TABLE laid;
