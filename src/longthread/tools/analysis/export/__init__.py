"""Whole results as files: CSV, Parquet, XLSX."""
