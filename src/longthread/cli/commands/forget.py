"""`longthread forget`: a conversation, or all that is kept of a person, without a trace; or what was deleted before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from longthread.cli import options
from longthread.cli.commands.db import row_of
from longthread.cli.language import say
from longthread.cli.options import find_thread
from longthread.cli.terminal import confirm, echo, echo_made, print_line
from longthread.cli.whole_store import bytes_text, count_noun, existing, run, show_progress
from longthread.errors import InvalidInput
from longthread.memory.forget import (
    Forgotten,
    forget_deleted,
    forget_thread,
    forget_user,
    look_at_thread,
    look_at_user,
)
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.maintenance.space import size_of
from longthread.store.tables import read_tables

T = TypeVar("T")

_TOLD = ("entries", "memories", "items")
"""Tables whose rows are counted for the user: what people and applications have given. The others follow from those."""


def forget(
    user: Annotated[
        str | None, typer.Option("--user", help="Forget this user: all conversations, all memories.")
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option("--thread", "-t", help="Forget this conversation: its id, the beginning of it, or last."),
    ] = None,
    deleted: Annotated[
        bool,
        typer.Option("--deleted", help="Write the store's files anew, without what was deleted before."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Delete all that is kept of a user or of a conversation, and write the store's files anew without it.

    It cannot be undone. It takes as long as the store is large, and may run while servers do.
    """
    if [user is not None, thread is not None, deleted].count(True) != 1:
        raise InvalidInput(reason="Say what is to be forgotten: --user, --thread or --deleted, one of them.")
    if user is not None and not user.strip():
        raise InvalidInput(reason="--user is empty. Give the user's id.")
    settings = Settings.load(database=database)
    if deleted:
        _forget_deleted(settings, dry_run=dry_run, yes=yes, as_json=as_json)
        return
    found, thread_id = _run(settings, lambda store: _look(store, settings.user, user, thread))
    whom = say("user {}", user) if user is not None else say("conversation {}", thread_id)
    is_known = bool(found.threads or found.rows)
    if not dry_run:
        if not yes:
            confirm("Forget {}: {}?", whom, _describe_forgotten(found))
        found = _run(settings, lambda store: _forget(store, settings.user, user, thread_id))
    if as_json:
        print_line({"forgotten": not dry_run, "threads": found.threads, "rows": found.rows, "problems": found.problems})
        return
    if is_known:
        echo("Would forget: {}: {}." if dry_run else "Forgotten: {}: {}.", whom, _describe_forgotten(found))
    else:  # the user may have defined something all the same
        echo("No conversations, memories or items are kept of {}.", whom)
    for problem in found.problems:
        echo_made(problem)


def _forget_deleted(settings: Settings, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    size, tables = _run(settings, _files)
    about: dict[str, object] = {"forgotten": not dry_run, "tables": tables, "size_before": size}
    told = f"{count_noun(len(tables), 'table')}, {bytes_text(size)}"
    if dry_run:
        if as_json:
            print_line(about | {"problems": []})
        else:
            echo("Would write anew: {}: {}.", told, ", ".join(tables))
        return
    if not yes:
        confirm("Write the store anew ({}), without what was deleted before?", told)
    problems, after = _run(settings, _write_anew)
    if as_json:
        print_line(about | {"size": after, "problems": problems})
        return
    echo("The store was written anew: it had {} and has {}.", bytes_text(size), bytes_text(after))
    for problem in problems:
        echo_made(problem)


async def _files(store: Driver) -> tuple[int, list[str]]:
    """How large a store is, and its tables."""
    async with store.reading() as tx:
        tables = await read_tables(tx)
    return await size_of(store), [table.name for table in tables.all]


async def _write_anew(store: Driver) -> tuple[list[str], int]:
    with show_progress("forgetting") as progress:
        problems = await forget_deleted(store, say=progress.say)
    return problems, await size_of(store)


async def _look(store: Driver, own: str, user: str | None, thread: str | None) -> tuple[Forgotten, str | None]:
    if user is not None:
        return await look_at_user(store, user), None
    thread_id = str(await find_thread(store, thread, user=own))
    return await look_at_thread(store, thread_id, user_id=own), thread_id


async def _forget(store: Driver, own: str, user: str | None, thread_id: str | None) -> Forgotten:
    if user is not None:
        return await forget_user(store, user, anew=True)
    return await forget_thread(store, str(thread_id), user_id=own, anew=True)


def _run(settings: Settings, work: Callable[[Driver], Awaitable[T]]) -> T:
    async def open_and_work() -> T:
        async with existing(settings) as store:
            return await work(store)

    return run(open_and_work())


def _describe_forgotten(found: Forgotten) -> str:
    parts = [count_noun(found.threads, "conversation")]
    return say(", ").join(parts + [count_noun(found.rows[name], row_of(name)) for name in _TOLD if name in found.rows])
