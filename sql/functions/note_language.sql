-- note_language: remembers that a level holds a record in a text search configuration other than the store's.
-- The row of the scope is locked only when the language is new there.
CREATE FUNCTION {schema}.note_language(tenant text, level bigint, spoken text) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = {schema}, pg_temp
AS $function$
BEGIN
    UPDATE scopes AS s SET languages = array_append(s.languages, spoken)
     WHERE s.tenant_id = tenant AND s.scope_id = level AND NOT spoken = ANY (s.languages);
END
$function$;
