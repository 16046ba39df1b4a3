"""The app's migrations: revision for revision those of `symfonic-pg migrate`."""
