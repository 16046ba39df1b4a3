-- search: everything plausible that is visible at a scope for one cue, vector and conversation, with what was
-- observed about each memory and nothing decided about it. Each route fills from every level of the lineage,
-- at most fanout a level, so that a large level never crowds out a small one.
-- The first row holds only summary: which routes ran, how complete each is (the worst level), and which languages
-- occur. The others hold a memory each; routes is a bit set in the order vector,
-- lexical, recent, salient, profile, graph. only_ids, if given, replaces the routes: these records are looked
-- at, if visible, whatever their layer and validity.
-- Planner settings hold for the call alone. They leave every statement one good plan (index scans and nested
-- loops), which is then kept as a generic plan: no planning on the hot path, no flip with the statistics.
-- Memories are looked up by key (memory_of, record_of), and their visibility is tested by array_position, which
-- cannot become the key of another index.
CREATE FUNCTION {schema}.search(
    tenant text, kinds text[], level_ids text[], wanted_layers text[], moment timestamptz, metadata_filter jsonb,
    fanout integer, model_name text, query_text text, store_language text, cue_languages text[], cue_terms text[],
    context_ids text[], only_ids text[]
)
RETURNS TABLE (
    summary text, routes integer, cosine double precision, lex double precision, hops integer, distance integer,
    record_id text, layer text, text text, salience double precision, kind text, created_at timestamptz,
    updated_at timestamptz, access_count bigint, last_accessed_at timestamptz, valid_from timestamptz,
    valid_until timestamptz, expires_at timestamptz, language text, metadata text
)
LANGUAGE plpgsql STABLE
SET search_path = {schema}, {vectors}, pg_temp
SET jit = off
-- the shares of the terms pass through JSON, which writes numbers as the session would
SET extra_float_digits = 1
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_material = off
SET enable_memoize = off
AS $function$
#variable_conflict use_column
DECLARE
    scan_limit CONSTANT integer := 5000;
    scopes bigint[];
    distances integer[];
    spoken text[];
    model models;
    query halfvec;
    stats record;
    route record;
    level bigint;
    vector_ids bigint[] := '{}';
    lexical_ids bigint[] := '{}';
    recent_ids bigint[] := '{}';
    salient_ids bigint[] := '{}';
    profile_ids bigint[] := '{}';
    graph_ids bigint[] := '{}';
    only_memories bigint[] := '{}';
    reached_ids bigint[] := '{}';
    reached_hops integer[] := '{}';
    -- the worst bound of each route over the levels; absent where the route did not run
    bounds jsonb := '{}';
    vector_bound integer := 0;
    lexical_bound integer := 0;
    recent_bound integer := 0;
    salient_bound integer := 0;
    profile_bound integer := 0;
    with_terms boolean;
    one_language boolean;
    shares jsonb;
BEGIN
    WITH seen AS MATERIALIZED (SELECT * FROM lineage(tenant, kinds, level_ids))
    SELECT ARRAY(SELECT l.scope_id FROM seen AS l ORDER BY l.distance),
           ARRAY(SELECT l.distance FROM seen AS l ORDER BY l.distance),
           ARRAY(SELECT DISTINCT unnest(l.languages) FROM seen AS l)
      INTO scopes, distances, spoken;
    IF query_text IS NOT NULL THEN
        SELECT * INTO model FROM models WHERE models.name = model_name;
        query := query_text::halfvec;
    END IF;
    -- Only the languages of this lineage: what a sibling wrote in another must change nothing here.
    SELECT coalesce(array_agg(cue.language), '{}'), coalesce(array_agg(cue.term), '{}')
      INTO cue_languages, cue_terms
      FROM unnest(cue_languages, cue_terms) AS cue(language, term)
     WHERE cue.language = store_language OR cue.language = ANY (spoken);
    SELECT * INTO stats FROM lexical_statistics(tenant, scopes, cue_languages, cue_terms);
    with_terms := stats.population > 0 AND cardinality(cue_terms) > 0;
    one_language := spoken <@ ARRAY[store_language];
    shares := stats.shares -> store_language;

    IF only_ids IS NOT NULL THEN
        only_memories := ARRAY(
            SELECT m.memory_id FROM unnest(only_ids) AS asked(record_id)
             CROSS JOIN LATERAL record_of(tenant, asked.record_id) AS m
             WHERE array_position(scopes, m.scope_id) > 0);
    ELSE
        FOREACH level IN ARRAY scopes LOOP
            IF model.model_id IS NOT NULL THEN
                route := vector_route(tenant, level, wanted_layers, moment, metadata_filter, fanout, model, query);
                vector_ids := vector_ids || route.ids;
                vector_bound := greatest(vector_bound, route.bound);
            END IF;
            IF with_terms AND level = ANY (stats.posting_scopes) THEN
                SELECT found.* INTO route
                  FROM (SELECT array_agg(p.language) AS languages, array_agg(p.term) AS terms,
                               array_agg(p.share) AS shares, array_agg(p.n) AS counts
                          FROM unnest(stats.posting_scopes, stats.posting_languages, stats.posting_terms,
                                      stats.posting_shares, stats.posting_counts)
                               AS p(scope_id, language, term, share, n)
                         WHERE p.scope_id = level) AS here
                 CROSS JOIN LATERAL lexical_route(
                        tenant, level, wanted_layers, moment, metadata_filter, fanout, store_language,
                        one_language, stats.mean_total, here.languages, here.terms, here.shares, here.counts) AS found;
                lexical_ids := lexical_ids || route.ids;
                lexical_bound := greatest(lexical_bound, route.bound);
            END IF;
            route := recent_route(tenant, level, wanted_layers, moment, metadata_filter, fanout, scan_limit);
            recent_ids := recent_ids || route.ids;
            recent_bound := greatest(recent_bound, route.bound);
            route := salient_route(tenant, level, wanted_layers, moment, metadata_filter, fanout, scan_limit);
            salient_ids := salient_ids || route.ids;
            salient_bound := greatest(salient_bound, route.bound);
            route := profile_route(tenant, level, wanted_layers, moment, metadata_filter, fanout, scan_limit);
            profile_ids := profile_ids || route.ids;
            profile_bound := greatest(profile_bound, route.bound);
        END LOOP;
        bounds := jsonb_build_object('recent', recent_bound, 'salient', salient_bound, 'profile', profile_bound);
        IF model.model_id IS NOT NULL THEN
            bounds := bounds || jsonb_build_object('vector', vector_bound);
        END IF;
        IF cardinality(cue_terms) > 0 THEN
            bounds := bounds || jsonb_build_object('lexical', lexical_bound);
        END IF;
    END IF;
    IF cardinality(context_ids) > 0 THEN
        route := graph_route(tenant, scopes, wanted_layers, moment, metadata_filter, fanout, context_ids);
        reached_ids := route.reached_ids;
        reached_hops := route.reached_hops;
        IF only_ids IS NULL THEN
            graph_ids := route.ids;
            bounds := bounds || jsonb_build_object('graph', route.bound);
        END IF;
    END IF;

    summary := jsonb_build_object('bounds', bounds, 'languages', spoken);
    RETURN NEXT;

    RETURN QUERY
    SELECT NULL::text, found.routes,
           1 - (e.embedding <=> query),
           CASE WHEN stats.shares ? coalesce(m.language, store_language) THEN coalesce(spoken_of.lex, 0) END,
           found.hops, distances[array_position(scopes, m.scope_id)],
           m.record_id, m.layer, m.text, m.salience, m.kind, m.created_at, m.updated_at,
           least(m.access_count + coalesce(uses.access_count, 0), 9223372036854775807)::bigint,
           greatest(m.last_accessed_at, uses.last_accessed_at),
           m.valid_from, m.valid_until, m.expires_at, m.language, m.metadata::text
      FROM (
        SELECT hit.memory_id, bit_or(hit.route) AS routes, min(hit.hops) AS hops
          FROM (
            SELECT unnest(vector_ids) AS memory_id, 1 AS route, NULL::integer AS hops
            UNION ALL SELECT unnest(lexical_ids), 2, NULL
            UNION ALL SELECT unnest(recent_ids), 4, NULL
            UNION ALL SELECT unnest(salient_ids), 8, NULL
            UNION ALL SELECT unnest(profile_ids), 16, NULL
            UNION ALL SELECT unnest(graph_ids), 32, NULL
            UNION ALL SELECT unnest(only_memories), 0, NULL
            UNION ALL SELECT unnest(reached_ids), NULL, unnest(reached_hops)
          ) AS hit
         GROUP BY hit.memory_id
        -- what was only reached tells how far a find lies, and is none itself
        HAVING bit_or(hit.route) IS NOT NULL
      ) AS found
     CROSS JOIN LATERAL memory_of(tenant, found.memory_id) AS m
      LEFT JOIN embeddings AS e
        ON e.tenant_id = tenant AND e.memory_id = m.memory_id AND e.model_id = model.model_id
      LEFT JOIN LATERAL (
        SELECT sum(u.access_count) AS access_count, max(u.last_accessed_at) AS last_accessed_at
          FROM usage AS u
         WHERE u.tenant_id = tenant AND u.memory_id = m.memory_id AND u.scope_id = ANY (scopes)
      ) AS uses ON true
      LEFT JOIN LATERAL (
        SELECT sum(term_weight((CASE WHEN one_language THEN shares
                                     ELSE stats.shares -> coalesce(m.language, store_language) END
                                ->> held.term)::double precision,
                               held.n, m.term_total, stats.mean_total)) AS lex
          FROM unnest(m.terms, m.term_counts) AS held(term, n)
         WHERE with_terms
      ) AS spoken_of ON true
     WHERE array_position(scopes, m.scope_id) > 0;
END
$function$;
