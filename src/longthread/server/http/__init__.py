"""The HTTP server: a socket of ours, what a client may take, and the names of files."""
