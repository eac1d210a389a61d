"""Retention, space, and what is left of deleted rows."""
