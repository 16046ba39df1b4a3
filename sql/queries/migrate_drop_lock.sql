-- migrate_drop_lock: give back the turn that migrate_keep_lock has kept.
-- params: none
SELECT pg_advisory_unlock(hashtextextended('symfonic_pg migrate', 0))
