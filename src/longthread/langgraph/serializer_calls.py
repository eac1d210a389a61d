"""Calls of an application's serializer: what it raises is of whatever class its cipher or its classes have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from longthread.errors import LongthreadError


class SerializerFailed(Exception):
    """A serializer, or a class that it makes, has raised `error`. It does not leave this package."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.error = error


@contextmanager
def calling_serializer() -> Iterator[None]:
    """Raise `SerializerFailed` for what an application's code raises in the block; our own errors pass."""
    try:
        yield
    except LongthreadError:
        raise
    except Exception as error:  # an application's classes and serializers raise what they like
        raise SerializerFailed(error) from error
