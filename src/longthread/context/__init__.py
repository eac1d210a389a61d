"""Which messages a model call sees, and the notes next to them."""
