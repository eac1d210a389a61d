"""`longthread memories …`: what is remembered of you; `longthread forget`: what is kept, gone without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer
from rich.markup import escape
from rich.table import Table

from longthread.cli import options
from longthread.cli.commands.db import row_of
from longthread.cli.language import say, translate
from longthread.cli.options import find_thread, moment
from longthread.cli.server_choice import chosen_server
from longthread.cli.terminal import Console, confirm, echo, echo_data, echo_made, join_by_tabs, print_line
from longthread.cli.whole_store import bytes_text, count_noun, existing, run, show_progress
from longthread.errors import InvalidInput, MemoryNotFound
from longthread.memory.forget import (
    Forgotten,
    forget_deleted,
    forget_memory,
    forget_thread,
    forget_user,
    look_at_thread,
    look_at_user,
)
from longthread.memory.user_memories import Memories
from longthread.model.memory import ANALYST, Memory, MemoryChanges, MemorySource, MemoryType, Statement
from longthread.runs.worker import RunWorker
from longthread.settings import Settings
from longthread.store import memories as memory_store
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.jobs import JobClaims
from longthread.store.maintenance.space import size_of
from longthread.store.memories import Owner
from longthread.store.open import open_store
from longthread.store.tables import read_tables

if TYPE_CHECKING:
    from longthread.cli.remote.client import ServerClient

T = TypeVar("T")

KindOption = Annotated[str | None, typer.Option("--type", help="episodic, semantic or procedural.")]
Named = Annotated[str, typer.Argument(help="The memory's id, or the beginning of it.")]
MemoriesWork = Callable[[Memories, Driver, str], Awaitable[T]]

memories = typer.Typer(help="List, add, edit, search and forget what is remembered of you.", no_args_is_help=True)


@memories.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    kind: KindOption = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """The memories that have not expired, the most important first."""
    chosen = _parse_kind(kind) if kind is not None else None

    async def list_there(client: ServerClient) -> Sequence[Memory]:
        from longthread.cli.remote.memory_calls import list_memories

        return (await list_memories(client, kind=chosen, limit=limit))[0]

    found = _work_with_memories(
        database,
        lambda all_, _, user: all_.list_(Owner(user), type_=chosen, limit=limit),
        list_there,
        read_only=read_only,
    )
    _print_memories(found, as_json=as_json)


@memories.command()
def add(
    text: Annotated[str, typer.Argument(help="What is to be remembered, in a sentence.")],
    kind: KindOption = None,
    importance: Annotated[
        float | None, typer.Option(help="0 to 1 (0.5); from 0.9 on it is given to every run.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="WHEN", help="A date or time (ISO 8601), or an age such as 30d.")
    ] = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Remember something. What says the same as a memory is that memory, said again; what is not given stays."""
    statement = Statement(
        text,
        _parse_kind(kind) if kind is not None else None,
        importance,
        moment(expires, "--expires", ahead=True) if expires else None,
    )

    async def write(all_: Memories, _: Driver, user: str) -> tuple[Memory, bool, list[str]]:
        done = await all_.remember(Owner(user, ANALYST), statement)
        return done.memory, done.is_new, await all_.embed(user)

    async def write_there(client: ServerClient) -> tuple[Memory, bool, list[str]]:
        from longthread.cli.remote.memory_calls import add_memory

        return (*await add_memory(client, statement), [])

    memory, is_new, warnings = _work_with_memories(database, write, write_there, creates=True)
    _print_problems(warnings)
    if as_json:
        print_line(_describe_memory(memory) | {"new": is_new})
    else:
        echo("Remembered: {}" if is_new else "Known already, and said again: {}", memory.id)


@memories.command()
def edit(
    memory: Named,
    text: Annotated[str | None, typer.Argument(help="Other words for it.")] = None,
    kind: KindOption = None,
    importance: Annotated[float | None, typer.Option(help="0 to 1; from 0.9 on it is given to every run.")] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="WHEN", help="A date or time (ISO 8601), an age such as 30d, or never.")
    ] = None,
    database: options.Database = None,
) -> None:
    """Change a memory; what is not given stays. With other words it does not go with its conversation any more."""
    never = expires == "never"
    until = moment(expires, "--expires", ahead=True) if expires and not never else None
    changes = MemoryChanges(
        text, _parse_kind(kind) if kind is not None else None, importance, until, never_expires=never
    )

    async def write(all_: Memories, store: Driver, user: str) -> list[str]:
        async with store.reading() as tx:
            memory_id = await _find_id(tx, memory, user)
        await all_.edit(memory_id, changes, user_id=user)
        return await all_.embed(user)

    async def write_there(client: ServerClient) -> list[str]:
        from longthread.cli.remote.memory_calls import edit_memory

        await edit_memory(client, memory, changes)
        return []

    _print_problems(_work_with_memories(database, write, write_there))


@memories.command()
def search(
    text: Annotated[str, typer.Argument(help="What to look for.")],
    limit: Annotated[int, typer.Option("--limit", "-k", min=1, help="How many.")] = 10,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """The memories that say it, the best first: by words, and by meaning with an embedder."""
    if not text.strip():
        raise InvalidInput(reason="There is nothing to look for. Give words; `longthread memories list` shows all.")

    async def find(all_: Memories, _: Driver, user: str) -> tuple[list[Memory], list[float], Sequence[str]]:
        found = await all_.search(Owner(user), text, k=limit)
        return [hit.memory for hit in found.hits], [hit.score for hit in found.hits], found.warnings

    async def find_there(client: ServerClient) -> tuple[list[Memory], list[float], Sequence[str]]:
        from longthread.cli.remote.memory_calls import list_memories

        found, warnings = await list_memories(client, text=text, limit=limit)
        return found, [], warnings

    found, scores, warnings = _work_with_memories(database, find, find_there, read_only=read_only)
    _print_problems(warnings)
    if not found and not as_json:
        echo("Nothing was found.", err=True)
    if as_json:
        for place, memory in enumerate(found):  # a server tells no scores
            print_line(_describe_memory(memory) | ({"score": round(scores[place], 3)} if scores else {}))
    else:
        _print_memories(found, as_json=False)


@memories.command()
def show(
    memory: Named,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """One memory as JSON, with the entries that it comes from."""

    async def read(_: Memories, store: Driver, user: str) -> dict[str, Any]:
        async with store.reading() as tx:
            found = await memory_store.find(tx, await _find_id(tx, memory, user), user_id=user)
            if found.expires_at is not None and found.expires_at <= datetime.now(UTC):
                raise MemoryNotFound(memory=memory)
            sources = await memory_store.sources(tx, found.id, user_id=user)
        return _describe_memory(found) | {"sources": [_describe_source(each) for each in sources]}

    async def read_there(client: ServerClient) -> dict[str, Any]:
        from longthread.cli.remote.memory_calls import find_memory

        found, sources = await find_memory(client, memory)
        return _describe_memory(found) | {"sources": sources}

    print_line(_work_with_memories(database, read, read_there, read_only=read_only))


@memories.command("forget")
def forget_one(
    memory: Named,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    database: options.Database = None,
) -> None:
    """Forget a memory with all that is kept of it. It cannot be undone."""

    async def read(_: Memories, store: Driver, user: str) -> Memory:
        async with store.reading() as tx:
            return await memory_store.find(tx, await _find_id(tx, memory, user), user_id=user)

    async def read_there(client: ServerClient) -> Memory:
        from longthread.cli.remote.memory_calls import find_memory

        return (await find_memory(client, memory))[0]

    found = _work_with_memories(database, read, read_there)
    if not yes:
        confirm("Forget “{}”?", found.content)

    async def forget_here(_: Memories, store: Driver, user: str) -> Sequence[str]:
        return (await forget_memory(store, found.id, user_id=user, anew=True)).problems

    async def forget_there(client: ServerClient) -> Sequence[str]:
        from longthread.cli.remote import memory_calls as remote

        await remote.forget_memory(client, found.id)
        return ()

    problems = _work_with_memories(database, forget_here, forget_there)
    echo("Forgot the memory {}.", found.id)
    _print_problems(problems)


async def _find_id(tx: Transaction, given: str, user: str) -> str:
    """The id of the memory that a person means by it or by its beginning.

    Raises:
        InvalidInput: it is empty, or several begin like that.
    """
    if not given.strip():
        raise InvalidInput(
            reason="The memory's id is empty. Give it, or the beginning of it; `longthread memories list` shows those "
            "there are."
        )
    found = await memory_store.that_begin(tx, given, user_id=user)
    if len(found) > 1:
        raise InvalidInput(reason=f"Several memories begin with {given}. Give more of the id.")
    return found[0] if found else given


def _work_with_memories(
    database: str | None,
    work: MemoriesWork[T],
    there: Callable[[ServerClient], Awaitable[T]],
    *,
    creates: bool = False,
    read_only: bool | None = None,
) -> T:
    """Do something with the memories of the store, or `there`, with those of the server that was chosen."""
    if (login := chosen_server()) is not None:
        from longthread.cli.remote.client import work_on_server

        return work_on_server(login, there)
    # Here and not above: LangChain takes long to load, and an embedder is made by it.
    from longthread.llm.embedders import embedder_of
    from longthread.memory.embedder import Asker

    settings = Settings.load(database=database, read_only=read_only)

    async def run() -> T:
        async with open_store(settings.database, creates=creates, read_only=settings.read_only) as store:
            worker = RunWorker(store)
            try:
                jobs = JobClaims(store, worker)
                return await work(Memories(store, Asker(embedder_of(settings)), jobs), store, settings.user)
            finally:
                await worker.close()

    return asyncio.run(run())


def _parse_kind(text: str) -> MemoryType:
    kinds: tuple[MemoryType, ...] = get_args(MemoryType)
    for kind in kinds:
        if kind == text:
            return kind
    raise InvalidInput(reason=f"--type is {text!r}; allowed is {', '.join(kinds[:-1])} or {kinds[-1]}.")


def _print_memories(found: Sequence[Memory], *, as_json: bool) -> None:
    if as_json:
        for memory in found:
            print_line(_describe_memory(memory))
        return
    console = Console()
    if not console.is_terminal:
        for memory in found:
            until = memory.expires_at.isoformat(timespec="seconds") if memory.expires_at else ""
            read = [f"after reading {memory.origin.summary}"] if memory.origin else []
            text = " ".join(memory.content.split())
            echo_data(join_by_tabs((memory.id, memory.type, f"{memory.importance:g}", text, until, *read)))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("memory", "type", "importance", "expires", "after reading", "id"):
        table.add_column(say(column), no_wrap=column != "memory")
    for memory in found:
        expires = f"{memory.expires_at.astimezone():%Y-%m-%d %H:%M}" if memory.expires_at else ""
        after = escape(translate(memory.origin.summary)) if memory.origin else ""
        table.add_row(escape(memory.content), memory.type, f"{memory.importance:g}", expires, after, memory.id)
    nothing = say("Nothing is remembered. Try: longthread memories add …")
    console.print(table if found else f"[dim]{nothing}[/dim]")


def _describe_memory(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "type": memory.type,
        "content": memory.content,
        "importance": memory.importance,
        "agent": memory.agent_id,
        "thread": memory.thread_id,
        "thread_deleted_at": memory.source_deleted_at.isoformat() if memory.source_deleted_at else None,
        "read": memory.origin.to_json() if memory.origin else None,
        "created_at": memory.created_at.isoformat(),
        "said_at": memory.said_at.isoformat(),
        "expires_at": memory.expires_at.isoformat() if memory.expires_at else None,
    }


def _describe_source(source: MemorySource) -> dict[str, Any]:
    read = {"read": source.origin.to_json()} if source.origin else {}
    return {"thread": source.thread_id, "seqs": list(source.seqs), **read}


def _print_problems(problems: Sequence[str]) -> None:
    for problem in problems:
        echo_made(problem)


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
    found, thread_id = _work_in_store(settings, lambda store: _look_at_subject(store, settings.user, user, thread))
    whom = say("user {}", user) if user is not None else say("conversation {}", thread_id)
    is_known = bool(found.threads or found.rows)
    if not dry_run:
        if not yes:
            confirm("Forget {}: {}?", whom, _describe_forgotten(found))
        found = _work_in_store(settings, lambda store: _forget_subject(store, settings.user, user, thread_id))
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
    size, tables = _work_in_store(settings, _measure_store)
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
    problems, after = _work_in_store(settings, _write_anew)
    if as_json:
        print_line(about | {"size": after, "problems": problems})
        return
    echo("The store was written anew: it had {} and has {}.", bytes_text(size), bytes_text(after))
    for problem in problems:
        echo_made(problem)


async def _measure_store(store: Driver) -> tuple[int, list[str]]:
    """How large a store is, and its tables."""
    async with store.reading() as tx:
        tables = await read_tables(tx)
    return await size_of(store), [table.name for table in tables.all]


async def _write_anew(store: Driver) -> tuple[list[str], int]:
    with show_progress("forgetting") as progress:
        problems = await forget_deleted(store, say=progress.say)
    return problems, await size_of(store)


async def _look_at_subject(
    store: Driver, own: str, user: str | None, thread: str | None
) -> tuple[Forgotten, str | None]:
    if user is not None:
        return await look_at_user(store, user), None
    thread_id = str(await find_thread(store, thread, user=own))
    return await look_at_thread(store, thread_id, user_id=own), thread_id


async def _forget_subject(store: Driver, own: str, user: str | None, thread_id: str | None) -> Forgotten:
    if user is not None:
        return await forget_user(store, user, anew=True)
    return await forget_thread(store, str(thread_id), user_id=own, anew=True)


def _work_in_store(settings: Settings, work: Callable[[Driver], Awaitable[T]]) -> T:
    async def open_and_work() -> T:
        async with existing(settings) as store:
            return await work(store)

    return run(open_and_work())


def _describe_forgotten(found: Forgotten) -> str:
    parts = [count_noun(found.threads, "conversation")]
    return say(", ").join(parts + [count_noun(found.rows[name], row_of(name)) for name in _TOLD if name in found.rows])
