"""The contract of the store, on every backend."""

from __future__ import annotations

import pytest

from longthread.store.open import open_store as open_at
from longthread.testing.contract import OpenStore, StoreContract


class TestContract(StoreContract):
    @pytest.fixture
    def open_store(self, store_address: str) -> OpenStore:
        return lambda: open_at(store_address)
