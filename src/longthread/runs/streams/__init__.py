"""Events of runs: stored, sent to the watchers of this process, and written together."""
