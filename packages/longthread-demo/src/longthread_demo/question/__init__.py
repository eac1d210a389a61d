"""From a question to a plan."""
