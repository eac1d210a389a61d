"""The semantic layer of a source: metrics that are declared or imported, and queries that are compiled from them."""
