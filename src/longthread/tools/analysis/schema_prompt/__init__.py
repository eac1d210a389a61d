"""The schema of a source as the beginning of a prompt: what its text columns hold, and its tables as DDL."""
