"""Boards of saved results, and links to them."""
