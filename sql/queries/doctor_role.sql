-- doctor_role: status, detail and fix for the role in question: one that exists and is bound by the rights it has.
-- Where no role was named it is the connected one, and rights without bounds are only worth a warning.
-- params: $1 the role's name, null for the connected one
SELECT CASE WHEN r.rolname IS NULL THEN 'failure'
            WHEN r.rolsuper OR r.rolbypassrls THEN CASE WHEN $1::text IS NULL THEN 'warning' ELSE 'failure' END
            ELSE 'ok' END,
       CASE WHEN r.rolname IS NULL THEN format('there is no role %I', asked.name)
            WHEN r.rolsuper THEN format('%I is a superuser', asked.name)
            WHEN r.rolbypassrls THEN format('%I ignores row-level security', asked.name)
            ELSE format('%I is an ordinary role', asked.name) END,
       CASE WHEN r.rolname IS NULL THEN format('CREATE ROLE %I LOGIN;', asked.name)
            WHEN r.rolsuper OR r.rolbypassrls THEN
                CASE WHEN $1::text IS NULL THEN 'run the store as an ordinary role and ask about it with --role'
                     ELSE format('ALTER ROLE %I NOSUPERUSER NOBYPASSRLS;', asked.name) END
            ELSE '' END
  FROM (SELECT coalesce($1::text, current_user::text) AS name) AS asked
  LEFT JOIN pg_catalog.pg_roles AS r ON r.rolname = asked.name
