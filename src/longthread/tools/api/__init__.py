"""API tools: one HTTP request from a template, to listed hosts and checked addresses."""
