"""Data files as tables: what a folder holds, encodings, layouts of rows, and types of columns."""
