"""What tests of the memory share with those of the store."""

from tests.store.conftest import plain

__all__ = ["plain"]
