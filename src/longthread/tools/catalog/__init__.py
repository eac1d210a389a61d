"""The catalog that people edit: documents, what they may say, and what they change."""
