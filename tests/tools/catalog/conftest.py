"""What the store's tests share is used here too."""

from __future__ import annotations

from tests.store.conftest import plain

__all__ = ["plain"]
