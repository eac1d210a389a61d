"""Retention, disk space, and removal of deleted data from files."""
