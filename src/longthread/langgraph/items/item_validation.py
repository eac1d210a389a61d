"""Validates operations on a store of items before anything is read or written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchOp,
    validate_op_namespace,
)

from longthread.errors import InvalidInput

MOST_MINUTES = 1_000 * 365 * 24 * 60
"""A time to live of a thousand years: later times cannot be written down."""


def check(op: Op) -> None:
    """Validate an operation.

    Raises:
        InvalidNamespaceError: a namespace is no tuple of texts, or a part of one is empty, or has a dot in it.
        InvalidInput: a value is no dict, or a number is out of its range.
    """
    for namespace in _namespaces(op):
        expect_tuple(namespace)
    validate_op_namespace(op)
    if isinstance(op, PutOp):
        _expect_dict(op)
        expect_minutes(op.ttl, f"The ttl of item {op.key!r}")
    elif isinstance(op, SearchOp | ListNamespacesOp):
        _expect_count(op.limit, "limit")
        _expect_count(op.offset, "offset")
        if isinstance(op, ListNamespacesOp) and op.max_depth is not None:
            _expect_count(op.max_depth, "max_depth")


def expect_minutes(given: Any, name: str) -> None:
    """Raise InvalidInput unless `given` is a number of minutes or None."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if given is not None and not (is_number and 0 <= given <= MOST_MINUTES):
        raise InvalidInput(
            reason=f"{name} is {given!r}; allowed is a number of minutes from 0 to {MOST_MINUTES:,}, or None for ever."
        )


def expect_config(given: Any, name: str) -> None:
    """Raise InvalidInput unless `given` is a dict or None."""
    if not isinstance(given, Mapping | None):
        raise InvalidInput(
            reason=f"The {name} of a LongthreadStore is of type {type(given).__name__}. Give a dict as LangGraph "
            "defines it, or None."
        )


def expect_tuple(namespace: Any) -> None:
    """Raise InvalidNamespaceError unless `namespace` is a tuple or a list, whatever its items are."""
    # A text would be read as the tuple of its characters.
    if not isinstance(namespace, tuple | list):
        raise InvalidNamespaceError(
            f"The namespace {namespace!r} is of type {type(namespace).__name__}. Give a tuple of texts, such as "
            '("users", "ada"), or ("users",) with its comma.'
        )


def _namespaces(op: Op) -> list[Any]:
    if isinstance(op, GetOp | PutOp):
        return [op.namespace]
    if isinstance(op, SearchOp):
        return [op.namespace_prefix]
    if isinstance(op, ListNamespacesOp):
        return [condition.path for condition in op.match_conditions or ()]
    return []


def _expect_dict(op: PutOp) -> None:
    if not isinstance(op.value, Mapping | None):
        kind = type(op.value).__name__
        raise InvalidInput(
            reason=f"The value of item {op.key!r} is of type {kind}, and items are dicts. Put it into one, such as "
            f'{{"value": …}}; None deletes an item.'
        )


def _expect_count(given: Any, name: str) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InvalidInput(reason=f"{name} is {given!r}; give a whole number from 0 on.")
