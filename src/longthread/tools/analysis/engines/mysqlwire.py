"""A connection to a MySQL server that limits the size of a row and never sends a plain password without TLS."""

from __future__ import annotations

from typing import Any

import pymysql
from pymysql.protocol import MysqlPacket

from longthread.errors import SqlFailed

_LARGEST = 64 * 2**20
"""Bytes of one row. PyMySQL has no limit, and a row of a thousand columns may have gigabytes."""
_PLAIN = frozenset({b"mysql_clear_password", b"dialog"})


class WireConnection(pymysql.Connection):
    """PyMySQL's connection with these limits."""

    _taken = 0

    def _read_packet(self, packet_type: type[MysqlPacket] = MysqlPacket) -> MysqlPacket:
        self._taken = 0
        return super()._read_packet(packet_type)  # type: ignore[no-any-return, no-untyped-call]

    def _read_bytes(self, num_bytes: int) -> bytes:
        self._taken += num_bytes
        if self._taken > _LARGEST:
            self._force_close()
            reason = f"a row has more than {_LARGEST:,} bytes. Select fewer columns, or LEFT(…) of them."
            raise SqlFailed(reason=reason)
        return super()._read_bytes(num_bytes)  # type: ignore[misc, no-any-return]

    def _force_close(self) -> None:
        result = getattr(self, "_result", None)
        if result is not None:  # else PyMySQL would read it to its end
            result.unbuffered_active = False
        super()._force_close()  # type: ignore[misc]

    def _process_auth(self, plugin_name: bytes, auth_packet: MysqlPacket, handler: Any = None) -> MysqlPacket:
        # Without TLS anybody could answer and ask for it, and PyMySQL would send it.
        if plugin_name in _PLAIN and not self._secure:  # type: ignore[attr-defined]
            reason = "the server wants the password in plain text, which is sent over TLS or a Unix socket alone"
            raise pymysql.OperationalError(2061, reason)
        return super()._process_auth(plugin_name, auth_packet, handler)  # type: ignore[misc, no-any-return]
