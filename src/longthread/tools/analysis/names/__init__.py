"""Names of tables and columns in a statement, held against the schema."""
