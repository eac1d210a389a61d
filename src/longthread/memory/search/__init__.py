"""Find entries: by their words, by their vectors, by both."""
