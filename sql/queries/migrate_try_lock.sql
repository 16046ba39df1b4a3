-- migrate_try_lock: take the turn to migrate for the rest of the transaction; false where another has it.
-- params: none
SELECT pg_try_advisory_xact_lock(hashtextextended('symfonic_pg migrate', 0))
