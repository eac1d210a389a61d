"""What lets somebody in: keys of providers, and links to conversations."""
