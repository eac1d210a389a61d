"""A query plan, and its SQL."""
