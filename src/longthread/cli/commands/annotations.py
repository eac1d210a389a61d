"""`longthread threads tag | metadata | expire | archive | pin …` and `longthread feedback`: what people note."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import quote

import typer

from longthread.cli import options
from longthread.cli.options import find_thread, moment
from longthread.cli.server_choice import chosen_server
from longthread.cli.terminal import Console, echo, echo_data, print_line
from longthread.cli.whole_store import count_noun, existing, output
from longthread.errors import InvalidInput
from longthread.model.thread import Opinion, Thread
from longthread.runs.services.feedback import JudgedAnswer, all_judged
from longthread.settings import Settings
from longthread.store import attributes, log
from longthread.store.driver import Transaction

if TYPE_CHECKING:
    from longthread.cli.remote.client import ServerClient

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

    async def change_there(client: ServerClient, thread_id: str) -> Thread:
        from longthread.cli.remote.thread_calls import change_tags

        return await change_tags(client, thread_id, tags or (), remove or ())

    changes = bool(tags or remove)
    found = _work_in_store(database, thread, change if changes else _find_thread, change_there, writes=changes)
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
    changes = {**_parse_pairs(values or ()), **dict.fromkeys(remove or ())}

    async def change(tx: Transaction, thread_id: str, user: str) -> Mapping[str, Any]:
        if message is not None:
            return await attributes.set_message_metadata(tx, thread_id, message, changes, user_id=user)
        return (await attributes.set_metadata(tx, thread_id, changes, user_id=user)).metadata

    async def look(tx: Transaction, thread_id: str, user: str) -> Mapping[str, Any]:
        found = await _find_thread(tx, thread_id, user)
        if message is None:
            return found.metadata
        seq = (await log.find_entry(tx, thread_id, message)).seq
        return (await attributes.message_metadata(tx, thread_id, first=seq, last=seq)).get(seq, {})

    async def work_there(client: ServerClient, thread_id: str) -> Mapping[str, Any]:
        from longthread.cli.remote.client import at
        from longthread.cli.remote.thread_calls import read_metadata

        if changes:
            place = f"/messages/{quote(message, safe='')}" if message is not None else ""
            changed = await client.send("PATCH", f"{at(thread_id)}{place}", {"metadata": changes})
            found: Mapping[str, Any] = changed["metadata"]
            return found
        return await read_metadata(client, thread_id, message)

    action = change if changes else look
    print_line(dict(_work_in_store(database, thread, action, work_there, writes=bool(changes))))


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

    body = {"expires_at": until.isoformat() if until else None} if when is not None else {}
    action = change if when is not None else _find_thread
    found = _work_in_store(database, thread, action, _change_there(body), writes=when is not None)
    expires = found.expires_at.isoformat(timespec="seconds") if found.expires_at else None
    if as_json:
        print_line({"thread_id": found.id, "expires_at": expires})
    else:
        echo_data(expires or _NEVER)


def archive(thread: _Name, database: options.Database = None) -> None:
    """Take a conversation out of the list; `threads list --archived` has it."""
    _set_archived(database, thread, True)


def unarchive(thread: _Name, database: options.Database = None) -> None:
    """Bring an archived conversation back into the list."""
    _set_archived(database, thread, False)


def pin(thread: _Name, database: options.Database = None) -> None:
    """Have the page's list show a conversation first; `threads list --pinned` has those alone."""
    _set_pinned(database, thread, True)


def unpin(thread: _Name, database: options.Database = None) -> None:
    """Take the pin of a conversation away."""
    _set_pinned(database, thread, False)


def _set_pinned(database: str | None, thread: str, pinned: bool) -> None:
    async def change(tx: Transaction, thread_id: str, user: str) -> Thread:
        return await attributes.set_pinned(tx, thread_id, pinned, user_id=user)

    _work_in_store(database, thread, change, _change_there({"pinned": pinned}), writes=True)


def _set_archived(database: str | None, thread: str, archived: bool) -> None:
    async def change(tx: Transaction, thread_id: str, user: str) -> Thread:
        return await attributes.set_archived(tx, thread_id, archived, user_id=user)

    _work_in_store(database, thread, change, _change_there({"archived": archived}), writes=True)


def _change_there(body: Mapping[str, Any]) -> Callable[[ServerClient, str], Awaitable[Thread]]:
    """Return what changes a conversation of a server; without changes it only reads it."""

    async def work(client: ServerClient, thread_id: str) -> Thread:
        from longthread.cli.remote.client import at
        from longthread.cli.remote.thread_calls import read_thread

        if body:
            return read_thread(await client.send("PATCH", at(thread_id), body))
        return read_thread(await client.get("/api/chat/history", thread_id=thread_id, limit=1))

    return work


async def _find_thread(tx: Transaction, thread_id: str, user: str) -> Thread:
    return await log.find_thread(tx, thread_id, user_id=user)


def _parse_pairs(given: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in given:
        key, separator, value = each.partition("=")
        if not separator or not key:
            raise InvalidInput(reason=f"{each!r} is no KEY=VALUE, such as team=data or 'score=0.5'.")
        found[key] = value
        with suppress(ValueError, RecursionError):
            found[key] = json.loads(value)
    return found


def _work_in_store(
    database: str | None,
    given: str,
    action: Callable[[Transaction, str, str], Awaitable[T]],
    there: Callable[[ServerClient, str], Awaitable[T]],
    *,
    writes: bool,
) -> T:
    """Do something with a thread of the store, or `there`, on the server that was chosen."""
    if (login := chosen_server()) is not None:
        from longthread.cli.remote.client import work_on_server

        async def find_and_work(client: ServerClient) -> T:
            return await there(client, str(await client.find_thread(given)))

        return work_on_server(login, find_and_work)
    settings = Settings.load(database=database)

    async def work() -> T:
        async with existing(settings) as store:
            thread_id = str(await find_thread(store, given, user=settings.user))
            async with store.writing() if writes else store.reading() as tx:
                return await action(tx, thread_id, settings.user)

    return asyncio.run(work())


_MARKS: dict[Opinion, str] = {"up": "+", "down": "-"}
_ANSWER = 200
"""Characters of an answer that are shown."""


def feedback(
    thread: Annotated[
        str | None, typer.Argument(help="Of this conversation alone: its id, the beginning of it, or last.")
    ] = None,
    up: Annotated[bool, typer.Option("--up", help="Those alone that helped.")] = False,
    down: Annotated[bool, typer.Option("--down", help="Those alone that did not.")] = False,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Write a set for `longthread eval analyst` to this file; - writes it here."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """The answers that people judged, the latest first: what they said, the question and its SQL."""
    if up and down:
        raise InvalidInput(reason="--up and --down leave nothing. Give one of them, or neither.")
    settings = Settings.load(database=database, read_only=read_only)

    async def read() -> list[JudgedAnswer]:
        async with existing(settings) as store:
            of = str(await find_thread(store, thread, user=settings.user)) if thread is not None else ""
            return [each async for each in all_judged(store, user_id=settings.user, thread_id=of)]

    wanted: set[Opinion] = {"up"} if up else {"down"} if down else {"up", "down"}
    found = [each for each in asyncio.run(read()) if each.feedback.opinion in wanted]
    if export is not None:
        _export_answers(found, None if str(export) == "-" else export, settings.database, force=force)
        return
    for each in found:
        if as_json:
            print_line(each.to_json())
        else:
            _print_answer(each)
    if not found and not as_json:
        echo("The user {} has judged no such answers here.", settings.user, err=True)


def _export_answers(found: list[JudgedAnswer], to: Path | None, store: str, *, force: bool) -> None:
    with output(to, store, force=force) as file:
        for each in found:
            file.write(json.dumps(each.to_eval(), ensure_ascii=False).encode() + b"\n")
    wrong = sum(each.feedback.opinion == "down" for each in found)
    echo(
        "{}; {} of them did not help: an eval leaves these out until you correct their SQL and set `verdict` to `up`.",
        count_noun(len(found), "answer"),
        wrong,
        err=True,
    )


def _print_answer(each: JudgedAnswer) -> None:
    console, entry = Console(), each.entry
    lines = [f"{_MARKS[each.feedback.opinion]} {each.question}"]
    lines += [f"  “{each.feedback.text}”"] if each.feedback.text else []
    answer = " ".join(entry.shown_text.split())
    lines += [f"  {answer[:_ANSWER]}{'…' if len(answer) > _ANSWER else ''}"]
    lines += [f"  {' '.join(each.sql.split())}"] if each.sql else []
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    told = f"  {each.feedback.at.date()}  {each.model or ''}  longthread view {entry.thread_id} --answer {entry.id}"
    console.print(told, style="dim", markup=False, highlight=False, soft_wrap=True)
