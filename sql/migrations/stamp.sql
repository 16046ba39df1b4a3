-- Writes down where the schema stands, in the version table that Alembic makes and reads, so that either tool goes
-- on where the other stopped. The placeholder revision is the one now reached, empty for none.
CREATE TABLE IF NOT EXISTS {schema}.symfonic_pg_version (
    version_num varchar(32) NOT NULL,
    CONSTRAINT symfonic_pg_version_pkc PRIMARY KEY (version_num)
);
DELETE FROM {schema}.symfonic_pg_version;
INSERT INTO {schema}.symfonic_pg_version (version_num) SELECT '{revision}' WHERE '{revision}' <> '';
