-- Runs first in every migration, in its transaction: one migrator at a time, then the schema and the extension.
-- The placeholder schema is the store's, vectors the schema in which pgvector lives or will live.
-- Nothing here is undone by a downgrade.

-- Another migrator may take long; the tables of a store in use may not be held up for long.
SET LOCAL lock_timeout = '10min';
SELECT pg_advisory_xact_lock(hashtextextended('symfonic_pg migrate', 0));
SET LOCAL lock_timeout = '10s';
SET LOCAL client_min_messages = 'warning';

DO $prepare$
DECLARE
    extension_schema text;
    extension_version text;
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION 'PostgreSQL % is too old: symfonic_pg needs 15 or newer', current_setting('server_version')
            USING ERRCODE = 'feature_not_supported';
    END IF;

    IF to_regnamespace('{schema}') IS NULL THEN
        IF NOT has_database_privilege(current_database(), 'CREATE') THEN
            RAISE EXCEPTION 'the role % may not create the schema {schema}', current_user
                USING ERRCODE = 'insufficient_privilege',
                      HINT = format('CREATE SCHEMA {schema} AUTHORIZATION %I;', current_user);
        END IF;
        CREATE SCHEMA {schema};
    ELSIF NOT (
        has_schema_privilege(to_regnamespace('{schema}'), 'CREATE')
        AND has_schema_privilege(to_regnamespace('{schema}'), 'USAGE')
    ) THEN
        RAISE EXCEPTION 'the role % may not create anything in the schema {schema}', current_user
            USING ERRCODE = 'insufficient_privilege',
                  HINT = format('GRANT USAGE, CREATE ON SCHEMA {schema} TO %I;', current_user);
    END IF;

    SELECT quote_ident(n.nspname), e.extversion INTO extension_schema, extension_version
    FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector';

    IF extension_schema IS NULL THEN
        BEGIN
            CREATE EXTENSION vector WITH SCHEMA {vectors};
        EXCEPTION
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'the role % may not create the extension vector', current_user
                    USING ERRCODE = 'insufficient_privilege',
                          HINT = 'CREATE EXTENSION vector WITH SCHEMA {vectors};';
            WHEN undefined_file OR feature_not_supported THEN
                RAISE EXCEPTION 'pgvector is not installed on this server'
                    USING ERRCODE = 'feature_not_supported',
                          HINT = 'install the package of pgvector 0.8 or newer for this PostgreSQL, then migrate again';
            WHEN invalid_schema_name THEN
                RAISE EXCEPTION 'the schema {vectors}, meant for the extension vector, does not exist'
                    USING ERRCODE = 'invalid_schema_name', HINT = 'CREATE SCHEMA {vectors};';
        END;
        SELECT e.extversion INTO extension_version FROM pg_catalog.pg_extension e WHERE e.extname = 'vector';
    ELSIF to_regnamespace(extension_schema) IS DISTINCT FROM to_regnamespace('{vectors}') THEN
        RAISE EXCEPTION 'the extension vector lives in the schema %, not in {vectors}', extension_schema
            USING ERRCODE = 'invalid_schema_name',
                  HINT = format('name %s as the schema of pgvector (-x vectors=%s)', extension_schema, extension_schema);
    END IF;

    IF (string_to_array(extension_version, '.')::integer[])[1:2] < ARRAY[0, 8] THEN
        RAISE EXCEPTION 'pgvector % is too old: symfonic_pg needs 0.8 or newer', extension_version
            USING ERRCODE = 'feature_not_supported', HINT = 'ALTER EXTENSION vector UPDATE;';
    END IF;

    IF NOT has_schema_privilege(to_regnamespace('{vectors}'), 'USAGE') THEN
        RAISE EXCEPTION 'the role % may not use the schema {vectors}, in which pgvector lives', current_user
            USING ERRCODE = 'insufficient_privilege',
                  HINT = format('GRANT USAGE ON SCHEMA {vectors} TO %I;', current_user);
    END IF;
END
$prepare$;
