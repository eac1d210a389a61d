"""The changes of a user's conversations and waiting approvals, read once for all of the user's clients."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

from longthread.errors import ThreadNotFound
from longthread.model.ids import new_id
from longthread.runs.streams.hub import Hub
from longthread.store import approvals, log
from longthread.store.driver import Driver

LOOK_SECONDS = 3.0
"""How often a list is read again while clients wait, where other processes signal no changes."""
LOOK_ANYWAY_SECONDS = 30.0
"""The same where they do: other programs that write the store signal nothing."""
TOGETHER_SECONDS = 0.2
"""How long changes wait for others: a list is read this often at most."""
KEPT_CHANGES = 256
"""Changes that a client may miss while it is away. One that has missed more gets the whole list again."""

ReadList = Callable[[], Awaitable[Mapping[str, Any]]]
"""Reads the first page of a user's list, as `GET /api/conversations` answers."""


class ListChange(NamedTuple):
    """A server-sent event's name and JSON, and the number after it; None: another one belongs to it."""

    number: int | None
    name: str
    data: str


class UserList:
    """The changes of the list that one user's clients get.

    A position is `mark.number`: a client that comes back to another process, or too late, has another mark or an old
    number, and gets the whole list.
    """

    def __init__(self, store: Driver, hub: Hub, user: str, read: ReadList) -> None:
        self.mark = new_id()[-8:]
        self._store = store
        self._hub = hub
        self._user = user
        self._read = read
        self._number = 0
        self._kept: deque[ListChange] = deque(maxlen=KEPT_CHANGES)
        self._items: dict[str, str] = {}
        self._waiting = ""
        self._counted: int | None = None
        self._count = hub.list_changes(user)
        self._reading = asyncio.Lock()

    async def after(self, position: str) -> Sequence[ListChange]:
        """Return the changes after a client's position, or the whole list.

        Raises:
            StoreError: the list cannot be read.
        """
        if self._counted != self._count.count:
            await self._look()
        mark, _, number = position.partition(".")
        if mark == self.mark and number.isdecimal() and self._number - len(self._kept) <= int(number) <= self._number:
            return [change for change in self._kept if (change.number or 0) > int(number)]
        listed = f'{{"conversations":[{",".join(self._items.values())}]}}'
        return [ListChange(None, "conversations", listed), ListChange(self._number, "approvals", self._waiting)]

    async def wait(self) -> None:
        """Wait until something may have changed, and a little more: changes come together."""
        if self._counted == self._count.count:
            try:
                async with asyncio.timeout(LOOK_ANYWAY_SECONDS if self._hub.hears else LOOK_SECONDS):
                    await self._count.bell.wait()
            except TimeoutError:
                self._counted = None
                return
        await asyncio.sleep(TOGETHER_SECONDS)

    async def _look(self) -> None:
        """Read the list once for all clients, and note what has changed."""
        async with self._reading:
            count = self._count.count
            if self._counted == count:
                return  # another client has read it
            page = await self._read()
            items = {item["id"]: _dump(item) for item in page["conversations"]}
            left = {each: await self._why_left(each) for each in self._items if each not in items}
            waiting = await self._calls()
            for each, item in reversed(items.items()):
                if self._items.get(each) != item:
                    self._note("conversation", item)
            for each, why in left.items():
                if why is not None:
                    self._note(why, _dump({"id": each}))
            if waiting != self._waiting:
                self._note("approvals", waiting)
            self._items, self._waiting, self._counted = items, waiting, count

    def _note(self, name: str, data: str) -> None:
        self._number += 1
        self._kept.append(ListChange(self._number, name, data))

    async def _why_left(self, thread_id: str) -> Literal["archived", "deleted"] | None:
        """Why a thread left the page; None if it is just older than those on it."""
        try:
            async with self._store.reading() as tx:
                row = await log.find_row(tx, thread_id, user_id=self._user)
        except ThreadNotFound:
            return "deleted"
        return "archived" if row["archived_at"] else None

    async def _calls(self) -> str:
        async with self._store.reading() as tx:
            runs = await approvals.waiting(tx, user_id=self._user)
            calls = [[call.request() for call in await approvals.pending(tx, *run)] for run in runs]
        listed = [{"thread_id": run[0], "run_id": run[1], "calls": each} for run, each in zip(runs, calls, strict=True)]
        return _dump({"waiting": listed})


class UserLists:
    """The lists that clients watch, by user."""

    def __init__(self, store: Driver, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._lists: WeakValueDictionary[str, UserList] = WeakValueDictionary()

    def of(self, user: str, read: ReadList) -> UserList:
        found = self._lists.get(user)
        if found is None:
            found = self._lists[user] = UserList(self._store, self._hub, user, read)
        return found


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
