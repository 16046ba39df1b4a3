-- follow_memories: keeps what is derived from memories in step with them, whoever writes: the postings, the
-- level and layer that a vector carries, and the languages spoken at a level. A changed text drops its vectors.
-- A statement trigger with transition tables: one set-based write a batch, COPY included.
-- The transition tables have no statistics; without these settings a small one may cost a scan of all postings.
CREATE FUNCTION {schema}.follow_memories() RETURNS trigger
LANGUAGE plpgsql
SET search_path = {schema}, {vectors}, pg_temp
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $function$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM embeddings AS e
         USING old_rows AS o JOIN new_rows AS n ON n.tenant_id = o.tenant_id AND n.memory_id = o.memory_id
         WHERE e.tenant_id = o.tenant_id AND e.memory_id = o.memory_id AND n.content_hash <> o.content_hash;
        UPDATE embeddings AS e SET scope_id = n.scope_id, layer = n.layer
          FROM new_rows AS n
         WHERE e.tenant_id = n.tenant_id AND e.memory_id = n.memory_id
           AND (e.scope_id, e.layer) IS DISTINCT FROM (n.scope_id, n.layer);
        DELETE FROM postings AS p
         USING old_rows AS o
          JOIN new_rows AS n ON n.tenant_id = o.tenant_id AND n.memory_id = o.memory_id
         CROSS JOIN unnest(o.terms) AS held(term)
         WHERE p.tenant_id = o.tenant_id AND p.scope_id = o.scope_id AND p.term = held.term
           AND p.memory_id = o.memory_id
           AND (o.scope_id, o.terms, o.term_counts) IS DISTINCT FROM (n.scope_id, n.terms, n.term_counts);
        INSERT INTO postings (tenant_id, scope_id, term, memory_id, term_count, term_total)
        SELECT n.tenant_id, n.scope_id, held.term, n.memory_id, held.n, n.term_total
          FROM old_rows AS o
          JOIN new_rows AS n ON n.tenant_id = o.tenant_id AND n.memory_id = o.memory_id
         CROSS JOIN unnest(n.terms, n.term_counts) AS held(term, n)
         WHERE (o.scope_id, o.terms, o.term_counts) IS DISTINCT FROM (n.scope_id, n.terms, n.term_counts);
    ELSIF TG_OP = 'DELETE' THEN
        DELETE FROM postings AS p
         USING old_rows AS o CROSS JOIN unnest(o.terms) AS held(term)
         WHERE p.tenant_id = o.tenant_id AND p.scope_id = o.scope_id AND p.term = held.term
           AND p.memory_id = o.memory_id;
        RETURN NULL;
    ELSE
        -- in key order: neighbouring index entries are written together
        INSERT INTO postings (tenant_id, scope_id, term, memory_id, term_count, term_total)
        SELECT n.tenant_id, n.scope_id, held.term, n.memory_id, held.n, n.term_total
          FROM new_rows AS n CROSS JOIN unnest(n.terms, n.term_counts) AS held(term, n)
         ORDER BY n.tenant_id, n.scope_id, held.term, n.memory_id;
    END IF;

    UPDATE scopes AS s SET languages = ARRAY(SELECT unnest(s.languages) UNION SELECT unnest(spoken.languages) ORDER BY 1)
      FROM (SELECT n.tenant_id, n.scope_id, array_agg(DISTINCT n.language) AS languages
              FROM new_rows AS n WHERE n.language IS NOT NULL GROUP BY n.tenant_id, n.scope_id) AS spoken
     WHERE s.tenant_id = spoken.tenant_id AND s.scope_id = spoken.scope_id
       AND NOT s.languages @> spoken.languages;
    RETURN NULL;
END
$function$;

CREATE TRIGGER memories_inserted AFTER INSERT ON {schema}.memories
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {schema}.follow_memories();
CREATE TRIGGER memories_updated AFTER UPDATE ON {schema}.memories
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.follow_memories();
CREATE TRIGGER memories_deleted AFTER DELETE ON {schema}.memories
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {schema}.follow_memories();
