"""This process as a worker: its row, its claims, and the ends of runs that it does not execute."""
