-- escaped: a kind or an id as it stands in the text form of a scope: %, /, : and control characters become the
-- upper-case %XX of their UTF-8 bytes.
CREATE FUNCTION {schema}.escaped(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $function$
    SELECT CASE WHEN name COLLATE "C" !~ '[%/:\u0001-\u001f\u007f-\u009f]' THEN name
           ELSE (
               SELECT string_agg(
                          CASE WHEN c.letter COLLATE "C" !~ '[%/:\u0001-\u001f\u007f-\u009f]' THEN c.letter
                          ELSE regexp_replace(upper(encode(convert_to(c.letter, 'UTF8'), 'hex')), '(..)', '%\1', 'g')
                          END, '' ORDER BY c.place)
                 FROM string_to_table(name, NULL) WITH ORDINALITY AS c(letter, place)
           ) END
$function$;
