"""`longthread threads tag | metadata | expire | archive | pin …`: what people note on a conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import typer

from longthread.cli import options
from longthread.cli.find_thread import find_thread
from longthread.cli.options import moment
from longthread.cli.screen import echo_data
from longthread.cli.terminal import print_line
from longthread.cli.whole_store import existing
from longthread.errors import InvalidInput
from longthread.model.thread import Thread
from longthread.settings import Settings
from longthread.store import attributes, log
from longthread.store.driver import Transaction

T = TypeVar("T")
_Name = Annotated[str, typer.Argument(help="The conversation: its id, the beginning of it, or last.")]
_NEVER = "never"


def tag(
    thread: _Name,
    tags: Annotated[list[str] | None, typer.Argument(help="Tags to add.")] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", "-r", help="A tag to take away.")] = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Add tags to a conversation, or take some away; it prints those that it then has."""

    async def change(tx: Transaction, thread_id: str, user: str) -> Thread:
        return await attributes.change_tags(tx, thread_id, add=tags or (), remove=remove or (), user_id=user)

    changes = bool(tags or remove)
    found = _with(database, thread, change if changes else _thread, writes=changes)
    if as_json:
        print_line({"thread_id": found.id, "tags": list(found.tags)})
        return
    for each in found.tags:
        echo_data(each)


def metadata(
    thread: _Name,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="Values to set: JSON, or else a text.")
    ] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", "-r", help="A key to take out.")] = None,
    message: Annotated[str | None, typer.Option("--message", help="Of this message alone, by its id.")] = None,
    database: options.Database = None,
) -> None:
    """Set metadata of a conversation, or of one of its messages; it prints, as JSON, what it then has."""
    changes = {**_pairs(values or ()), **dict.fromkeys(remove or ())}

    async def change(tx: Transaction, thread_id: str, user: str) -> Mapping[str, Any]:
        if message is not None:
            return await attributes.set_message_metadata(tx, thread_id, message, changes, user_id=user)
        return (await attributes.set_metadata(tx, thread_id, changes, user_id=user)).metadata

    async def look(tx: Transaction, thread_id: str, user: str) -> Mapping[str, Any]:
        found = await _thread(tx, thread_id, user)
        if message is None:
            return found.metadata
        seq = (await log.find_entry(tx, thread_id, message)).seq
        return (await attributes.message_metadata(tx, thread_id, first=seq, last=seq)).get(seq, {})

    print_line(dict(_with(database, thread, change if changes else look, writes=bool(changes))))


def expire(
    thread: _Name,
    when: Annotated[
        str | None, typer.Argument(help="A date or time such as 2027-05-08, from now on such as 30d, or never.")
    ] = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Say when a conversation expires; `longthread db prune --apply` deletes it then. It prints when that is."""
    until = moment(when, "WHEN", ahead=True, ends=True) if when is not None and when != _NEVER else None

    async def change(tx: Transaction, thread_id: str, user: str) -> Thread:
        return await attributes.set_expiry(tx, thread_id, until, user_id=user)

    found = _with(database, thread, change if when is not None else _thread, writes=when is not None)
    expires = found.expires_at.isoformat(timespec="seconds") if found.expires_at else None
    if as_json:
        print_line({"thread_id": found.id, "expires_at": expires})
    else:
        echo_data(expires or _NEVER)


def archive(thread: _Name, database: options.Database = None) -> None:
    """Take a conversation out of the list; `threads list --archived` has it."""
    _archive(database, thread, True)


def unarchive(thread: _Name, database: options.Database = None) -> None:
    """Bring an archived conversation back into the list."""
    _archive(database, thread, False)


def pin(thread: _Name, database: options.Database = None) -> None:
    """Have the page's list show a conversation first; `threads list --pinned` has those alone."""
    _pin(database, thread, True)


def unpin(thread: _Name, database: options.Database = None) -> None:
    """Take the pin of a conversation away."""
    _pin(database, thread, False)


def _pin(database: str | None, thread: str, pinned: bool) -> None:
    async def change(tx: Transaction, thread_id: str, user: str) -> Thread:
        return await attributes.set_pinned(tx, thread_id, pinned, user_id=user)

    _with(database, thread, change, writes=True)


def _archive(database: str | None, thread: str, archived: bool) -> None:
    async def change(tx: Transaction, thread_id: str, user: str) -> Thread:
        return await attributes.set_archived(tx, thread_id, archived, user_id=user)

    _with(database, thread, change, writes=True)


async def _thread(tx: Transaction, thread_id: str, user: str) -> Thread:
    return await log.find_thread(tx, thread_id, user_id=user)


def _pairs(given: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in given:
        key, separator, value = each.partition("=")
        if not separator or not key:
            raise InvalidInput(reason=f"{each!r} is no KEY=VALUE, such as team=data or 'score=0.5'.")
        found[key] = value
        with suppress(ValueError, RecursionError):
            found[key] = json.loads(value)
    return found


def _with(
    database: str | None, given: str, action: Callable[[Transaction, str, str], Awaitable[T]], *, writes: bool
) -> T:
    settings = Settings.load(database=database)

    async def work() -> T:
        async with existing(settings) as store:
            thread_id = str(await find_thread(store, given, user=settings.user))
            async with store.writing() if writes else store.reading() as tx:
                return await action(tx, thread_id, settings.user)

    return asyncio.run(work())
