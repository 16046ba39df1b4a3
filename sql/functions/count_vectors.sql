-- count_vectors: how many vectors of a model a level holds in some layers, counted no further than at_most.
CREATE FUNCTION {schema}.count_vectors(
    tenant text, level bigint, wanted_layers text[], model_number smallint, at_most integer
) RETURNS integer
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $function$
BEGIN
    RETURN count(*)
      FROM (
        SELECT
          FROM embeddings AS e
         WHERE e.tenant_id = tenant AND e.scope_id = level AND e.model_id = model_number
           AND e.layer = ANY (wanted_layers)
         LIMIT at_most
      ) AS counted;
END
$function$;
