"""The index by which entries are found: terms, postings, vectors."""
