"""The rows of the index: segments, vectors, shards."""
