"""Errors of the server."""

from __future__ import annotations

from longthread.errors.base import LongthreadError


class ServerError(LongthreadError, exit_code=7):
    message = "The server cannot start: {reason}"


class PortInUse(ServerError):
    message = """Port {port} of {host} is in use by another program. Is Longthread running already? Else give another
    one with --port or LONGTHREAD_PORT; 0 takes any free port."""
    port: int
    host: str


class AddressUnavailable(ServerError):
    message = "The server cannot listen on {host}, port {port}: {reason} Give another with --host and --port."
    host: str
    port: int
