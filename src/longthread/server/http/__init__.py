"""The HTTP server: a socket of ours, and what a client may take."""
