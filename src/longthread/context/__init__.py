"""Which messages a model call sees, and the notes beside them."""
