-- is_live: whether a memory is valid and not expired at a moment (valid_from <= moment < valid_until).
CREATE FUNCTION {schema}.is_live(
    valid_from timestamptz, valid_until timestamptz, expires_at timestamptz, moment timestamptz
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $function$
    SELECT (valid_from IS NULL OR valid_from <= moment)
       AND (valid_until IS NULL OR moment < valid_until)
       AND (expires_at IS NULL OR moment < expires_at)
$function$;
