-- migrate_keep_lock: keep the turn to migrate beyond the transaction that has it, for what runs outside of any.
-- params: none
SELECT pg_try_advisory_lock(hashtextextended('symfonic_pg migrate', 0))
