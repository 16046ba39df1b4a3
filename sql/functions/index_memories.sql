-- index_memories, reindex_memory, unindex_memory: keep what is derived from memories in step with them, whoever
-- writes: the postings, the level and layer that a vector carries, and the languages spoken at a level.

-- New memories: one set-based write a statement, COPY included.
CREATE FUNCTION {schema}.index_memories() RETURNS trigger
LANGUAGE plpgsql
SET search_path = {schema}, pg_temp
AS $function$
BEGIN
    -- in key order: neighbouring index entries are written together
    INSERT INTO postings (tenant_id, scope_id, term, memory_id, term_count, term_total)
    SELECT n.tenant_id, n.scope_id, held.term, n.memory_id, held.n, n.term_total
      FROM new_rows AS n CROSS JOIN unnest(n.terms, n.term_counts) AS held(term, n)
     ORDER BY n.tenant_id, n.scope_id, held.term, n.memory_id;
    PERFORM note_language(spoken.tenant_id, spoken.scope_id, spoken.language)
       FROM (SELECT DISTINCT n.tenant_id, n.scope_id, n.language
               FROM new_rows AS n WHERE n.language IS NOT NULL ORDER BY 1, 2, 3) AS spoken;
    RETURN NULL;
END
$function$;

-- One memory that changed in what others hold of it. A changed text drops its vectors.
CREATE FUNCTION {schema}.reindex_memory() RETURNS trigger
LANGUAGE plpgsql
SET search_path = {schema}, {vectors}, pg_temp
AS $function$
BEGIN
    IF NEW.content_hash <> OLD.content_hash THEN
        DELETE FROM embeddings AS e WHERE e.tenant_id = NEW.tenant_id AND e.memory_id = NEW.memory_id;
    ELSIF (NEW.scope_id, NEW.layer) IS DISTINCT FROM (OLD.scope_id, OLD.layer) THEN
        UPDATE embeddings AS e SET scope_id = NEW.scope_id, layer = NEW.layer
         WHERE e.tenant_id = NEW.tenant_id AND e.memory_id = NEW.memory_id;
    END IF;
    DELETE FROM postings AS p
     WHERE p.tenant_id = OLD.tenant_id AND p.scope_id = OLD.scope_id AND p.term = ANY (OLD.terms)
       AND p.memory_id = OLD.memory_id;
    INSERT INTO postings (tenant_id, scope_id, term, memory_id, term_count, term_total)
    SELECT NEW.tenant_id, NEW.scope_id, held.term, NEW.memory_id, held.n, NEW.term_total
      FROM unnest(NEW.terms, NEW.term_counts) AS held(term, n);
    IF NEW.language IS NOT NULL THEN
        PERFORM note_language(NEW.tenant_id, NEW.scope_id, NEW.language);
    END IF;
    RETURN NULL;
END
$function$;

-- One deleted memory: by row, so that each posting is found by its key, whatever the statistics say.
CREATE FUNCTION {schema}.unindex_memory() RETURNS trigger
LANGUAGE plpgsql
SET search_path = {schema}, pg_temp
AS $function$
BEGIN
    DELETE FROM postings AS p
     WHERE p.tenant_id = OLD.tenant_id AND p.scope_id = OLD.scope_id AND p.term = ANY (OLD.terms)
       AND p.memory_id = OLD.memory_id;
    RETURN NULL;
END
$function$;

CREATE TRIGGER memories_inserted AFTER INSERT ON {schema}.memories
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {schema}.index_memories();
CREATE TRIGGER memories_updated AFTER UPDATE ON {schema}.memories
    FOR EACH ROW WHEN ((OLD.scope_id, OLD.layer, OLD.language, OLD.content_hash, OLD.terms, OLD.term_counts)
        IS DISTINCT FROM (NEW.scope_id, NEW.layer, NEW.language, NEW.content_hash, NEW.terms, NEW.term_counts))
    EXECUTE FUNCTION {schema}.reindex_memory();
CREATE TRIGGER memories_deleted AFTER DELETE ON {schema}.memories
    FOR EACH ROW EXECUTE FUNCTION {schema}.unindex_memory();
