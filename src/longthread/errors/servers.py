"""Errors of the command line where it works on a server."""

from __future__ import annotations

from longthread.errors.base import InvalidInput, LongthreadError

__all__ = [
    "NotLoggedIn",
    "NotOnServer",
    "OptionNotOnServer",
    "RunNotExecuted",
    "ServerAddressRefused",
    "ServerAnswerInvalid",
    "ServerKeyRefused",
    "ServerKeyUnreadable",
    "ServerProblem",
    "ServerUnreachable",
]


class ServerAddressRefused(InvalidInput):
    message = "{address} cannot be used as a server: {reason}"
    address: str


class NotOnServer(InvalidInput):
    message = """`longthread {command}` works on a store, and you are logged in to {server}. Give --local for the store
    of this machine, or name one with --database."""
    command: str
    server: str


class OptionNotOnServer(InvalidInput):
    message = "{option} is not possible on a server. Leave it out, or give --local for the store of this machine."
    option: str


class NotLoggedIn(InvalidInput):
    message = "You are not logged in to {server}. Run `longthread login {server}`, or set LONGTHREAD_KEY."
    server: str


class ServerKeyRefused(LongthreadError, exit_code=2):
    message = """{server} does not accept the API key: it was revoked, has expired, or is another server's. Make one in
    your account there, then run `longthread login {server}`."""
    server: str


class ServerKeyUnreadable(LongthreadError):
    message = "The API key for {server} cannot be read from where it is kept: {reason} Run `longthread login {server}`."
    server: str


class ServerUnreachable(LongthreadError):
    message = "{server} cannot be reached: {reason} `longthread whoami` shows the server; --local uses none."
    server: str


class ServerAnswerInvalid(LongthreadError):
    message = "{server} did not answer as a Longthread server does: {reason}"
    server: str


class RunNotExecuted(LongthreadError):
    message = """No process executes the run any more. What was done is kept: `longthread resume {thread}` goes on with
    it."""
    thread: str


class ServerProblem(LongthreadError):
    """A problem that a server described in words of its own. It has the code and the exit code of its kind."""

    message = "{reason}"

    def __init__(self, *, reason: str, exit_code: int, code: str) -> None:
        super().__init__(reason=reason)
        self.exit_code = exit_code  # type: ignore[misc]
        self.code = code  # type: ignore[misc]
