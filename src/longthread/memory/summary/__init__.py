"""Summaries, digests and topics of what a view no longer holds."""
