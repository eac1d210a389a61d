"""Events of runs: stored, told to the watchers of this process, and written together."""
