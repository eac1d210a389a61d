"""Whose program is at the other end of a connection within this machine, as Linux tells it.

A proxy on this machine connects from loopback, as the owner does, and may add nothing to what it hands on. It mostly
runs as a user of its own, such as www-data. See proc(5) on /proc/net/tcp.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

PEER = "longthread.peer"
"""The key of a request's scope that holds its `Peer`."""
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS = "0A"
_NO_SOCKET = "0"


class Peer:
    """The peer of one connection, by the ports of its two ends. It is looked up once, when somebody asks."""

    def __init__(self, peer_port: int, own_port: int) -> None:
        self._peer_port = f"{peer_port:04X}"
        self._own_port = f"{own_port:04X}"

    @cached_property
    def is_other_users(self) -> bool:
        """Whether another user's program is there, or one that has closed its end: nobody knows whose it was. False
        where the system has no such table, or not of this server's ports."""
        is_known, users = False, []
        for local, remote, state, user, inode in _sockets():
            if local == self._own_port and state == _LISTENS:
                is_known = True
            if local == self._peer_port and remote == self._own_port:
                users.append(user if inode != _NO_SOCKET else "")
        if users:
            return any(user != str(os.geteuid()) for user in users)
        return is_known


def _sockets() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the local port, the remote port, the state, the user and the inode of each TCP socket."""
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                each = line.split()
                yield each[1].rpartition(":")[2], each[2].rpartition(":")[2], each[3], each[7], each[9]
