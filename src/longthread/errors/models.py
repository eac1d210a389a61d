"""Errors of models and embedders, and of the server."""

from __future__ import annotations

from pathlib import Path

from longthread.errors.base import LongthreadError

__all__ = [
    "AddressUnavailable",
    "EmbedderUnavailable",
    "JsonParseFailed",
    "KeyNotFound",
    "KeyRefused",
    "ModelFailed",
    "ModelNotAllowed",
    "ModelNotUsable",
    "ModelUnavailable",
    "PortInUse",
    "ProviderUnreachable",
    "SecretKeyUnusable",
    "ServerError",
    "SettingsNotAllowed",
    "WindowTooSmall",
]


class ModelUnavailable(LongthreadError, exit_code=6):
    message = "The model {model} cannot be used: {reason} Or use `--model demo`, which needs no key and no network."
    model: str


class EmbedderUnavailable(LongthreadError, exit_code=6):
    message = """The embedder {embedder} cannot be used: {reason} Check MEMORY_EMBEDDING_MODEL, or leave it out: recall
    then goes by keywords alone."""
    embedder: str


class ModelNotUsable(ModelUnavailable, code="model_unavailable"):
    message = "The model {model} cannot be used: {reason}"


class ModelNotAllowed(LongthreadError, exit_code=2):
    message = """The model {model} may not be named from another machine. Leave `model` out, or name one of these:
    {allowed}."""
    model: str
    allowed: str


class KeyRefused(LongthreadError, exit_code=6):
    message = "The key of {provider} was refused: {reason} Nothing was stored. Copy the key again from its provider."
    provider: str


class ProviderUnreachable(LongthreadError, exit_code=6):
    message = """The key of {provider} could not be checked. {reason} Nothing was stored. Try again, or store the key
    unchecked."""
    provider: str


class KeyNotFound(LongthreadError, exit_code=2):
    message = "There is no key of {provider}. Enter one, or set it in the environment where Longthread runs."
    provider: str


class SecretKeyUnusable(LongthreadError, exit_code=2):
    message = """The key under which secrets are stored, {where}, {problem} Set LONGTHREAD_SECRET_KEY where Longthread
    runs, or let it write to its data folder."""
    where: Path
    problem: str


class SettingsNotAllowed(LongthreadError, exit_code=2):
    message = """Only the user of the server's own machine may do this. Open the server there at 127.0.0.1, and not
    through a proxy."""


class ModelFailed(LongthreadError, exit_code=6):
    message = "The model {model} failed: {reason} The conversation is kept; `longthread resume {thread}` tries again."
    model: str
    thread: str


class WindowTooSmall(LongthreadError, exit_code=6):
    message = """The context window of {model}, {window}, leaves no room for the conversation beside {needed}. Use a
    model with a larger one, or correct MEMORY_CONTEXT_WINDOW."""
    model: str
    window: str
    needed: str


class JsonParseFailed(LongthreadError, code="json_parse_error"):
    message = """The model's reply was not a valid call or answer {count} times in a row. The conversation is kept with
    the raw replies. Try another model, or --protocol {other}."""
    count: int
    other: str


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
