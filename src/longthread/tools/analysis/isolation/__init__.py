"""Embedded engines in a process of their own, which can be killed and has a memory limit.

A *fork server* is a small process that has loaded the drivers. It forks *workers*; each worker serves one source.
`forkserver` is this process's end of the fork server, `remote` its end of a worker.
"""
