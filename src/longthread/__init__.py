"""Longthread: an LLM agent's conversation as one append-only log."""

__version__ = "0.1.0"
