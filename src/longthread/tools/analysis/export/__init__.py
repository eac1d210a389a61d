"""Results beyond what a model saw of them: pages, and whole ones as files: CSV, Parquet, XLSX."""
