-- doctor_extension: status, detail and fix for pgvector: there at all, new enough, where it lives, and whether the
-- server's package offers a newer version.
-- params: none
SELECT CASE WHEN v.installed IS NULL OR v.old THEN 'failure' WHEN v.installed <> v.offered THEN 'warning' ELSE 'ok' END,
       CASE WHEN v.installed IS NULL AND v.offered IS NULL THEN 'pgvector is not installed on this server'
            WHEN v.installed IS NULL THEN 'the database has no extension vector; the server offers ' || v.offered
            ELSE format('pgvector %s in the schema %I', v.installed, v.home)
                 || CASE WHEN v.old THEN ', symfonic_pg needs 0.8 or newer' ELSE '' END
                 || CASE WHEN v.installed <> v.offered THEN ', the server offers ' || v.offered ELSE '' END
       END,
       CASE WHEN v.installed IS NULL AND v.offered IS NULL THEN 'install the package of pgvector 0.8 or newer'
            WHEN v.installed IS NULL THEN 'CREATE EXTENSION vector;'
            WHEN v.old OR v.installed <> v.offered THEN 'ALTER EXTENSION vector UPDATE;'
            ELSE '' END
  FROM (SELECT e.extversion AS installed, n.nspname AS home,
               (string_to_array(e.extversion, '.')::integer[])[1:2] < ARRAY[0, 8] AS old,
               (SELECT a.default_version FROM pg_catalog.pg_available_extensions AS a WHERE a.name = 'vector') AS offered
          FROM (VALUES ('vector')) AS wanted (name)
          LEFT JOIN pg_catalog.pg_extension AS e ON e.extname = wanted.name
          LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace) AS v
