"""By what a database is known as a store of Longthread's, whoever opens it and under whatever name."""

APPLICATION_ID = 0x4C4F4E47
"""SQLite's `application_id` of a store: "LONG"."""
MIGRATIONS = "longthread_migrations"
"""The table of PostgreSQL that names the version of a store."""
