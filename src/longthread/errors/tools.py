"""Errors of tools that users define."""

from __future__ import annotations

from longthread.errors.base import LongthreadError
from longthread.errors.input import InvalidInput


class ToolInvalid(InvalidInput):
    message = "The tool {tool} cannot be used: {problem}"
    tool: str = ""
    problem: str
    known: bool = False
    """Whether the problem has been reported before."""


class ArgumentsInvalid(InvalidInput):
    message = "The call of {tool} was not made. {problem}"
    tool: str
    problem: str


class SecretUnusable(LongthreadError, exit_code=2):
    message = """The secret {name} {problem} Whoever runs Longthread sets it, as LONGTHREAD_SECRET_{name} in the
    environment or in .env."""
    name: str
    problem: str


class ApiFailed(LongthreadError):
    message = "The request failed: {reason}"
    sent: str = ""


class ApiRefused(LongthreadError):
    message = "The request was not sent: {reason}"


class ApiStatus(LongthreadError):
    message = "The server answered with status {status}: {body}"
    status: int
    body: str


class CodeFailed(LongthreadError):
    message = "The tool's code failed: {reason}"


class CodeStopped(LongthreadError):
    message = "The tool's code was stopped: {reason}"


class CodeUnavailable(LongthreadError):
    message = "The tool's code cannot be run here: {reason}"


class McpFailed(LongthreadError):
    message = "The MCP server {server} failed: {reason}"
    server: str
    forgotten: bool = False
    """Whether the server has ended the session, and a new one can be opened."""


class McpToolFailed(LongthreadError):
    message = "The MCP server's tool failed: {reason}"
