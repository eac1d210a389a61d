"""Whether a store takes writes is found out by writing."""

from __future__ import annotations

import pytest

from longthread.errors import StoreFull, StoreReadOnly
from longthread.store import leases
from longthread.store.driver import Driver
from longthread.store.maintenance import space
from longthread.store.maintenance.space import WriteCheck
from longthread.store.open import open_store


async def test_a_store_that_takes_writes_is_left_as_it_was(store: Driver) -> None:
    await WriteCheck(store).expect()
    async with store.reading() as tx:
        assert await leases.workers(tx) == {}


async def test_one_that_is_read_only_says_so(store: Driver, store_address: str) -> None:
    async with open_store(store_address, read_only=True) as closed:
        with pytest.raises(StoreReadOnly, match="LONGTHREAD_READ_ONLY"):
            await WriteCheck(closed).expect()


async def test_a_full_disk_is_told_and_seen_again_when_it_has_room(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def full(*_: object) -> None:
        nonlocal looks
        looks += 1
        raise StoreFull(reason="no space is left.")

    check = WriteCheck(store)
    monkeypatch.setattr(leases, "register", full)
    for _ in range(3):
        with pytest.raises(StoreFull):
            await check.expect()
    assert looks == 1, "who asks often does not write often"
    monkeypatch.undo()
    monkeypatch.setattr(space, "FRESH_SECONDS", -1.0)
    await check.expect()
