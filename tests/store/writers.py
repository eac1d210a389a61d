"""A process that extends threads, many at once: `python -m tests.store.writers STORE NAME THREADS ENTRIES`.

Each thread is written by a task of its own, entry by entry, each in a transaction. An entry that was acknowledged is
printed, as `thread id`, before the next one is begun. `shared` is a thread that every process writes to.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from longthread.model.entry import Draft
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store


async def write(store: Driver, name: str, threads: int, entries: int, acknowledged: Callable[[str, str], None]) -> None:
    """Extend so many threads at once, each by so many entries."""

    async def write_one(thread_id: str) -> None:
        async with store.writing() as tx:
            await log.create_thread(tx, thread_id, user_id="u")
        for number in range(entries):
            async with store.writing() as tx:
                draft = Draft(id=f"{name}-{number}", role="user", text="text " * 20)
                [entry] = await log.extend(tx, thread_id, [draft])
            acknowledged(thread_id, entry.id)

    await asyncio.gather(*(write_one(each) for each in ["shared", *(f"{name}-{n}" for n in range(1, threads))]))


async def main(address: str, name: str, threads: int, entries: int) -> None:
    """Write as the arguments say."""
    async with open_store(address) as store:
        await write(store, name, threads, entries, lambda *told: print(*told, flush=True))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
