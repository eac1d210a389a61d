"""The catalog: documents, their validation, and changes."""
