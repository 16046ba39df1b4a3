-- lexical_route: the live memories of one level with the highest lex, at most fanout of them.
-- cue_* name what occurs at this level: term, its share (lexical_statistics) and how many memories hold it.
-- All postings are scored while they are at most scored_limit. Above it the rarest terms are read first, and
-- what they find is completed with the frequent terms from the memories themselves; what holds frequent terms
-- alone is left out. The result is still the true top where its last score is more than anything left out could reach.
-- Postings know neither layer nor language; the memory is looked up for them where the answer needs it.
-- bound: 0 the true top, 2 something that was not scored could belong to it.
CREATE FUNCTION {schema}.lexical_route(
    tenant text, level bigint, wanted_layers text[], moment timestamptz, metadata_filter jsonb,
    fanout integer, store_language text, one_language boolean, mean_total double precision,
    cue_languages text[], cue_terms text[], cue_shares double precision[], cue_counts integer[],
    OUT ids bigint[], OUT bound integer
)
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $function$
DECLARE
    scored_limit CONSTANT integer := 3000;
    first_languages text[];
    first_terms text[];
    first_shares double precision[];
    later_languages text[];
    later_terms text[];
    later_shares double precision[];
    every_layer CONSTANT boolean := wanted_layers @> '{semantic,episodic,procedural,prospective}';
    keep integer;
    found bigint;
    lowest_kept double precision;
    lowest_score double precision;
    unread double precision;
BEGIN
    WITH ordered AS (
        SELECT cue.*, row_number() OVER rarest = 1 OR sum(cue.n) OVER rarest <= scored_limit AS first
          FROM unnest(cue_languages, cue_terms, cue_shares, cue_counts) AS cue(language, term, share, n)
        WINDOW rarest AS (ORDER BY cue.n, cue.term, cue.language ROWS UNBOUNDED PRECEDING)
    )
    SELECT array_agg(o.language) FILTER (WHERE o.first), array_agg(o.term) FILTER (WHERE o.first),
           array_agg(o.share) FILTER (WHERE o.first),
           array_agg(o.language) FILTER (WHERE NOT o.first), array_agg(o.term) FILTER (WHERE NOT o.first),
           array_agg(o.share) FILTER (WHERE NOT o.first),
           -- the most that a memory could score on terms which are not read to their end
           (SELECT max(own.share)
              FROM (SELECT sum(partly.share) AS share
                      FROM ordered AS partly
                     WHERE NOT partly.first OR partly.n > scored_limit
                     GROUP BY partly.language) AS own)
      INTO first_languages, first_terms, first_shares, later_languages, later_terms, later_shares, unread
      FROM ordered AS o;
    -- Most memories are live, so the best few times fanout nearly always hold the answer.
    keep := greatest(200, 4 * fanout);
    LOOP
        WITH partial AS MATERIALIZED (
            SELECT p.memory_id, sum(term_weight(cue.share, p.term_count, p.term_total, mean_total)) AS score
              FROM unnest(first_languages, first_terms, first_shares) AS cue(language, term, share)
             CROSS JOIN LATERAL (
                SELECT *
                  FROM postings
                 WHERE postings.tenant_id = tenant AND postings.scope_id = level AND postings.term = cue.term
                 LIMIT scored_limit
             ) AS p
             WHERE (every_layer AND one_language) OR EXISTS (
                    SELECT FROM memory_of(tenant, p.memory_id) AS m
                     WHERE m.layer = ANY (wanted_layers) AND coalesce(m.language, store_language) = cue.language)
             GROUP BY p.memory_id
        ), kept AS MATERIALIZED (
            SELECT * FROM partial ORDER BY partial.score DESC, partial.memory_id LIMIT keep
        ), scored AS (
            SELECT kept.memory_id, kept.score + coalesce(completed.score, 0) AS score
              FROM kept
              LEFT JOIN LATERAL (
                SELECT sum(term_weight(cue.share, p.term_count, p.term_total, mean_total)) AS score
                  FROM unnest(later_languages, later_terms, later_shares) AS cue(language, term, share)
                 CROSS JOIN LATERAL (
                    SELECT *
                      FROM postings
                     WHERE postings.tenant_id = tenant AND postings.scope_id = level AND postings.term = cue.term
                       AND postings.memory_id = kept.memory_id
                     LIMIT 1
                 ) AS p
                 WHERE one_language OR cue.language = (
                        SELECT coalesce(m.language, store_language) FROM memory_of(tenant, kept.memory_id) AS m)
              ) AS completed ON true
        ), live AS MATERIALIZED (
            SELECT best.memory_id, best.score
              FROM (SELECT * FROM scored ORDER BY scored.score DESC, scored.memory_id) AS best
             CROSS JOIN LATERAL memory_of(tenant, best.memory_id) AS m
             WHERE is_live(m.valid_from, m.valid_until, m.expires_at, moment)
               AND (metadata_filter IS NULL OR m.metadata @> metadata_filter)
             ORDER BY best.score DESC, best.memory_id
             LIMIT fanout
        )
        SELECT ARRAY(SELECT live.memory_id FROM live ORDER BY live.score DESC, live.memory_id),
               (SELECT min(live.score) FROM live), (SELECT count(*) FROM partial),
               (SELECT min(kept.score) FROM kept)
          INTO ids, lowest_score, found, lowest_kept;
        EXIT WHEN cardinality(ids) = fanout OR found <= keep;
        keep := found;
    END LOOP;

    bound := CASE
        WHEN unread IS NULL THEN 0
        WHEN cardinality(ids) = fanout
         AND lowest_score >= unread + CASE WHEN found > keep THEN lowest_kept ELSE 0 END THEN 0
        ELSE 2 END;
END
$function$;
