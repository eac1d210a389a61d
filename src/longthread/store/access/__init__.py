"""What lets somebody in: keys of providers."""
