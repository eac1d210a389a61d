"""Data files as tables: listing, encodings, row layouts and column types."""
