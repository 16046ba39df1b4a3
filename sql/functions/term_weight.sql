-- term_weight: what one occurring term adds to lex: share * f / (f + k1 (1 - b + b L / L_avg)), k1 = 0.6, b = 0.75.
-- share is the term's idf over the sum of the cue's idfs, f its count in the text, L the text's number of terms
-- (BM25: Robertson and Zaragoza 2009, without the factor k1 + 1, so that lex stays in [0, 1)).
CREATE FUNCTION {schema}.term_weight(
    share double precision, term_count integer, term_total integer, mean_total double precision
) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $function$
    SELECT share * term_count / (term_count + 0.6 * (0.25 + 0.75 * coalesce(term_total / nullif(mean_total, 0), 0)))
$function$;
