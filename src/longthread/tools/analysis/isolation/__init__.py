"""Embedded engines in a process of their own, which can be killed and has a memory limit.

A *nest* is a small process that has loaded the drivers and forks; a *worker* is its fork, and holds one source. The
`nursery` is this process's side of the nest, `remote` its side of a worker.
"""
