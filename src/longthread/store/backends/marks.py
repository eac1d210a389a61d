"""The marks by which Longthread recognizes a database as its store, under any name and for any process that opens
it."""

APPLICATION_ID = 0x4C4F4E47
"""SQLite's `application_id` of a store: "LONG"."""
MIGRATIONS = "longthread_migrations"
"""The table of PostgreSQL that names the version of a store."""
