"""Which messages a model call sees, and what is told beside them."""
