"""A provider that follows a script over a real socket, and an embedder: for tests and benchmarks of Longthread."""
