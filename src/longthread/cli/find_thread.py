"""Conversations by what people call them."""

from __future__ import annotations

from contextlib import suppress

from longthread.errors import InvalidInput, ThreadNotFound
from longthread.store import listing, log
from longthread.store.driver import Driver


async def find_thread(
    store: Driver, given: str | None, *, user: str, may_be_new: bool = False, else_new: bool = False
) -> str | None:
    """The id of the thread that a person means by an id, the beginning of one, or `last`.

    Where the thread may be a new one, the beginning of another's id is not taken for that one; with `else_new` it is,
    and what is the beginning of none is a new one's id.

    Raises:
        ThreadNotFound: there is none like it, and it is not to be made.
        InvalidInput: several begin like that.
    """
    if given is None:
        return None
    if not given.strip():
        if not may_be_new and await _is_there(store, given, user=user):
            return given
        raise InvalidInput(reason="The name of the thread is empty. Give an id, the beginning of one, or last.")
    async with store.reading() as tx:
        if given == "last":
            latest = await listing.last_thread(tx, user_id=user)
            found = [latest] if latest is not None else []
        else:
            found = await listing.threads_that_begin(tx, given, user_id=user)
    if given != "last" and (may_be_new or given in found):
        return given
    if len(found) > 1:
        raise InvalidInput(reason=f"Several threads begin with {given}. Give more of the id.")
    if not found and else_new and given != "last":
        return given
    if not found:
        raise ThreadNotFound(thread=given)
    return found[0]


async def _is_there(store: Driver, thread_id: str, *, user: str) -> bool:
    async with store.reading() as tx:
        with suppress(ThreadNotFound):
            await log.find_row(tx, thread_id, user_id=user)
            return True
    return False
