-- doctor_encoding: status, detail and fix for the encoding of the database.
-- params: none
SELECT CASE WHEN e.name = 'UTF8' THEN 'ok' ELSE 'failure' END,
       'the database ' || current_database() || ' is encoded in ' || e.name,
       CASE WHEN e.name = 'UTF8' THEN ''
            ELSE 'move to a database made with: CREATE DATABASE ... TEMPLATE template0 ENCODING ''UTF8'';' END
  FROM (SELECT current_setting('server_encoding') AS name) AS e
