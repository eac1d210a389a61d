"""The checkpointer."""
