"""Whose program is at the other end of a connection within this machine, as Linux tells it.

A proxy on this machine connects from loopback, as the owner does, and may add nothing to what it hands on. It mostly
runs as a user of its own, such as www-data. See sock_diag(7), and proc(5) on /proc/net/tcp.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

PEER = "longthread.peer"
"""The key of a request's scope that holds its `Peer`."""
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS = "0A"
_NO_SOCKET = "0"
_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_NO_COOKIE = 0xFFFFFFFF
_ANY_STATE = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
"""Of a netlink message: length, type, flags, number, sender."""
_PORTS = struct.Struct("!HH")
"""Of the socket's two ends, its own first: 0 of a listener, which the kernel tells where no connection is."""
_PORTS_AT = _HEADER.size + 4
_OWNER = struct.Struct("=II")
"""User and inode: what ends an `inet_diag_msg`."""
_OWNER_AT = _HEADER.size + 64
_WAIT_SECONDS = 1.0


class Peer:
    """The peer of one connection, by the addresses of its two ends. It is looked up once, when somebody needs it."""

    def __init__(self, peer: tuple[str, int], own: tuple[str, int]) -> None:
        self._peer = peer
        self._own = own

    @cached_property
    def is_other_users(self) -> bool:
        """Whether another user's program is there, or one that has closed its end: nobody knows whose it was. False
        where the system has no such table, or not of this server's ports."""
        user = _find_user(self._peer, self._own)
        return self._is_in_tables() if user is None else user != os.geteuid()

    def _is_in_tables(self) -> bool:
        peer_port, own_port = f"{self._peer[1]:04X}", f"{self._own[1]:04X}"
        is_known, users = False, []
        for local, remote, state, user, inode in _sockets():
            if local == own_port and state == _LISTENS:
                is_known = True
            if local == peer_port and remote == own_port:
                users.append(user if inode != _NO_SOCKET else "")
        if users:
            return any(user != str(os.geteuid()) for user in users)
        return is_known


def _find_user(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    """Return the user of the peer's socket, which the kernel looks up by its address; None where it tells none."""
    if sys.platform != "linux":
        return None
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
    try:
        ends = [socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (peer, own)]
        connection = struct.pack("!HH16s16s", peer[1], own[1], *ends) + struct.pack("=3I", 0, _NO_COOKIE, _NO_COOKIE)
        body = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, _ANY_STATE) + connection
        header = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.settimeout(_WAIT_SECONDS)
            kernel.sendto(header + body, (0, 0))
            reply = kernel.recv(4096)
        if _HEADER.unpack_from(reply)[1] != _SOCK_DIAG_BY_FAMILY:
            return None
        if _PORTS.unpack_from(reply, _PORTS_AT) != (peer[1], own[1]):
            return None
        user, inode = _OWNER.unpack_from(reply, _OWNER_AT)
    except (OSError, struct.error):
        return None
    return user if inode else None


def _sockets() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the local port, the remote port, the state, the user and the inode of each TCP socket."""
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                each = line.split()
                yield each[1].rpartition(":")[2], each[2].rpartition(":")[2], each[3], each[7], each[9]
