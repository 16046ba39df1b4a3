-- scope_text: the text form of a level's path, such as org:acme/user:u1; NULL where the level has no row.
-- For people and for the views: the store itself compares levels by their numbers.
CREATE FUNCTION {schema}.scope_text(tenant text, level bigint) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    SELECT string_agg({schema}.escaped(step.kind) || ':' || {schema}.escaped(step.level_id), '/' ORDER BY step.depth)
      FROM {schema}.scope_path(tenant, level) AS path
     CROSS JOIN unnest(path.kinds, path.level_ids) WITH ORDINALITY AS step(kind, level_id, depth)
$function$;
