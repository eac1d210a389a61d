"""Errors of models and embedders."""

from __future__ import annotations

from longthread.errors.base import LongthreadError


class ModelUnavailable(LongthreadError, exit_code=6):
    message = "The model {model} cannot be used: {reason} Or use `--model demo`, which needs no key and no network."
    model: str


class EmbedderUnavailable(LongthreadError, exit_code=6):
    message = """The embedder {embedder} cannot be used: {reason} Check MEMORY_EMBEDDING_MODEL, or leave it out: recall
    then goes by keywords alone."""
    embedder: str


class ModelNotUsable(ModelUnavailable, code="model_unavailable"):
    message = "The model {model} cannot be used: {reason}"


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
