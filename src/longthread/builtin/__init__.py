"""The tools that every agent has: recall, memories, charts."""
