"""Chat models: what a call takes and gives, and the providers."""
