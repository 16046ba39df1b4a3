-- seen_record: a memory as it looks from a lineage: its usage is what it was written with plus what these levels used.
CREATE FUNCTION {schema}.seen_record(tenant text, scopes bigint[], distances integer[], memory bigint)
RETURNS TABLE (
    distance integer, record_id text, layer text, text text, salience double precision, kind text,
    created_at timestamptz, updated_at timestamptz, access_count bigint, last_accessed_at timestamptz,
    valid_from timestamptz, valid_until timestamptz, expires_at timestamptz, language text, metadata text
)
LANGUAGE sql STABLE PARALLEL SAFE
AS $function$
    SELECT distances[array_position(scopes, m.scope_id)], m.record_id, m.layer, m.text, m.salience, m.kind,
           m.created_at, m.updated_at, least(m.access_count + coalesce(uses.access_count, 0), 9223372036854775807)::bigint,
           greatest(m.last_accessed_at, uses.last_accessed_at),
           m.valid_from, m.valid_until, m.expires_at, m.language, m.metadata::text
      FROM {schema}.memory_of(tenant, memory) AS m
      LEFT JOIN LATERAL (
        SELECT sum(u.access_count) AS access_count, max(u.last_accessed_at) AS last_accessed_at
          FROM {schema}.usage AS u
         WHERE u.tenant_id = tenant AND u.memory_id = memory AND u.scope_id = ANY (scopes)
      ) AS uses ON true
     WHERE array_position(scopes, m.scope_id) > 0
$function$;
