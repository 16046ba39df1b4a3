-- untrigger: leaves out what follows a write to memories, which is mostly the postings.
-- params: none
ALTER TABLE {schema}.memories DISABLE TRIGGER USER;
