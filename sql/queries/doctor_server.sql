-- doctor_server: status, detail and fix for the version of the server.
-- params: none
SELECT CASE WHEN v.number < 150000 THEN 'failure' WHEN v.number >= 190000 THEN 'warning' ELSE 'ok' END,
       'PostgreSQL ' || current_setting('server_version')
       || CASE WHEN v.number >= 190000 THEN ', newer than what symfonic_pg was tried on' ELSE '' END,
       CASE WHEN v.number < 150000 THEN 'upgrade the server to PostgreSQL 15 or newer'
            WHEN v.number >= 190000 THEN 'look for a newer symfonic-pg'
            ELSE '' END
  FROM (SELECT current_setting('server_version_num')::integer AS number) AS v
