"""The PostgreSQL store: statements, executors, repository and candidate source."""
