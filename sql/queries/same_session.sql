-- same_session: a row where this session's number is the one that the connection was told when it was made; a
-- pooler in between tells its own.
-- params: none
SELECT 1 WHERE pg_backend_pid() = {backend}
