-- lexical_statistics: what a cue's terms weigh over the query's own lineage, and where they occur.
-- shares is {language: {term: idf / sum of the language's idfs}}; idf = ln(1 + (N - n + 0.5) / (n + 0.5)) with N the
-- memories of the lineage (every layer, valid or not) and n those that hold the term. No count goes past
-- count_limit. posting_* list, for each level, term and language, how many memories hold the term.
CREATE FUNCTION {schema}.lexical_statistics(
    tenant text, scopes bigint[], cue_languages text[], cue_terms text[],
    OUT population integer, OUT mean_total double precision, OUT shares jsonb,
    OUT posting_scopes bigint[], OUT posting_languages text[], OUT posting_terms text[],
    OUT posting_shares double precision[], OUT posting_counts integer[]
)
LANGUAGE plpgsql STABLE PARALLEL SAFE
-- search switches hash joins off; a cue of thousands of terms needs them
SET enable_hashjoin = on
AS $function$
DECLARE
    count_limit CONSTANT integer := 20000;
    level bigint;
    counted integer;
    totals bigint;
    sum_totals bigint := 0;
BEGIN
    population := 0;
    IF cardinality(cue_terms) = 0 THEN RETURN; END IF;
    FOREACH level IN ARRAY scopes LOOP
        SELECT count(*), coalesce(sum(m.term_total), 0)
          INTO counted, totals
          FROM (
            SELECT memories.term_total
              FROM memories
             WHERE memories.tenant_id = tenant AND memories.scope_id = level
             LIMIT count_limit - population
          ) AS m;
        population := population + counted;
        sum_totals := sum_totals + totals;
    END LOOP;
    mean_total := sum_totals::double precision / nullif(population, 0);

    WITH cue AS (
        SELECT DISTINCT pair.language, pair.term FROM unnest(cue_languages, cue_terms) AS pair(language, term)
    ), occurrences AS MATERIALIZED (
        SELECT wanted.term, level_of.scope_id, found.n
          FROM (SELECT DISTINCT cue.term FROM cue) AS wanted
         CROSS JOIN unnest(scopes) AS level_of(scope_id)
         CROSS JOIN LATERAL (
            SELECT count(*)::integer AS n
              FROM (
                SELECT
                  FROM postings AS p
                 WHERE p.tenant_id = tenant AND p.scope_id = level_of.scope_id AND p.term = wanted.term
                 LIMIT count_limit
              ) AS counted_postings
         ) AS found
    ), frequencies AS (
        SELECT occurrences.term, least(sum(occurrences.n), population) AS n
          FROM occurrences GROUP BY occurrences.term
    ), weighed AS MATERIALIZED (
        SELECT cue.language, cue.term, ln(1 + (population - f.n + 0.5::double precision) / (f.n + 0.5)) AS idf
          FROM cue JOIN frequencies AS f ON f.term = cue.term
    ), shared AS MATERIALIZED (
        SELECT weighed.language, weighed.term,
               weighed.idf / sum(weighed.idf) OVER (PARTITION BY weighed.language) AS share
          FROM weighed
    ), placed AS (
        SELECT occurrences.scope_id, shared.language, shared.term, shared.share, occurrences.n
          FROM shared JOIN occurrences ON occurrences.term = shared.term AND occurrences.n > 0
    )
    SELECT (SELECT jsonb_object_agg(by_language.language, by_language.terms)
              FROM (SELECT shared.language, jsonb_object_agg(shared.term, shared.share) AS terms
                      FROM shared GROUP BY shared.language) AS by_language),
           array_agg(placed.scope_id), array_agg(placed.language), array_agg(placed.term),
           array_agg(placed.share), array_agg(placed.n)
      INTO shares, posting_scopes, posting_languages, posting_terms, posting_shares, posting_counts
      FROM placed;
END
$function$;
