"""Vectors of texts, and who makes them."""
