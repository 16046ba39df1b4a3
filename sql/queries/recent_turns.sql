-- recent_turns: the last turns at exactly a scope, oldest first.
-- params: $1 tenant, $2 kinds, $3 level ids, $4 limit
SELECT last.turn_id, last.speaker, last.text, last.turn
  FROM (
    SELECT t.turn_id, t.speaker, t.text, t.turn, t.arrival
      FROM {schema}.lineage($1::text, $2::text[], $3::text[]) AS l
     CROSS JOIN LATERAL (
        SELECT *
          FROM {schema}.turns
         WHERE turns.tenant_id = $1 AND turns.scope_id = l.scope_id
         ORDER BY turns.turn DESC, turns.arrival DESC
         LIMIT $4::integer
     ) AS t
     WHERE l.distance = 0
  ) AS last
 ORDER BY last.turn, last.arrival;
