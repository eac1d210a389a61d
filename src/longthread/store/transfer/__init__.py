"""Threads and whole stores on their way to another place."""
