"""Sources: databases and data files that an analyst may query, never change, and the tools for them."""
