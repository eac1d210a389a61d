"""`longthread memories …`: what is remembered of you beyond one conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar, get_args

import typer
from rich.markup import escape
from rich.table import Table

from longthread.cli import options
from longthread.cli.language import say, translate
from longthread.cli.options import moment
from longthread.cli.terminal import Console, confirm, echo, echo_data, echo_made, join_by_tabs, print_line
from longthread.errors import InvalidInput, MemoryNotFound
from longthread.memory.forget import forget_memory
from longthread.memory.user_memories import Memories
from longthread.model.memory import ANALYST, Memory, MemoryChanges, MemorySource, MemoryType, Statement
from longthread.runs.worker import RunWorker
from longthread.settings import Settings
from longthread.store import memories as memory_store
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.jobs import JobClaims
from longthread.store.memories import Owner
from longthread.store.open import open_store

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
    chosen = _kind(kind) if kind is not None else None
    found = _with(
        database, lambda all_, _, user: all_.list_(Owner(user), type_=chosen, limit=limit), read_only=read_only
    )
    _print(found, as_json=as_json)


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
        _kind(kind) if kind is not None else None,
        importance,
        moment(expires, "--expires", ahead=True) if expires else None,
    )

    async def write(all_: Memories, _: Driver, user: str) -> tuple[Memory, bool, list[str]]:
        done = await all_.remember(Owner(user, ANALYST), statement)
        return done.memory, done.is_new, await all_.embed(user)

    memory, is_new, warnings = _with(database, write, creates=True)
    _warn(warnings)
    if as_json:
        print_line(_json(memory) | {"new": is_new})
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
    changes = MemoryChanges(text, _kind(kind) if kind is not None else None, importance, until, never_expires=never)

    async def write(all_: Memories, store: Driver, user: str) -> list[str]:
        async with store.reading() as tx:
            memory_id = await _id_of(tx, memory, user)
        await all_.edit(memory_id, changes, user_id=user)
        return await all_.embed(user)

    _warn(_with(database, write))


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
    found = _with(database, lambda all_, _, user: all_.search(Owner(user), text, k=limit), read_only=read_only)
    _warn(found.warnings)
    if not found.hits and not as_json:
        echo("Nothing was found.", err=True)
    if as_json:
        for hit in found.hits:
            print_line(_json(hit.memory) | {"score": round(hit.score, 3)})
    else:
        _print([hit.memory for hit in found.hits], as_json=False)


@memories.command()
def show(
    memory: Named,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """One memory as JSON, with the entries that it comes from."""

    async def read(_: Memories, store: Driver, user: str) -> dict[str, Any]:
        async with store.reading() as tx:
            found = await memory_store.find(tx, await _id_of(tx, memory, user), user_id=user)
            if found.expires_at is not None and found.expires_at <= datetime.now(UTC):
                raise MemoryNotFound(memory=memory)
            sources = await memory_store.sources(tx, found.id, user_id=user)
        return _json(found) | {"sources": [_source(each) for each in sources]}

    print_line(_with(database, read, read_only=read_only))


@memories.command()
def forget(
    memory: Named,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    database: options.Database = None,
) -> None:
    """Forget a memory with all that is kept of it. It cannot be undone."""

    async def read(_: Memories, store: Driver, user: str) -> Memory:
        async with store.reading() as tx:
            return await memory_store.find(tx, await _id_of(tx, memory, user), user_id=user)

    found = _with(database, read)
    if not yes:
        confirm("Forget “{}”?", found.content)
    gone = _with(database, lambda _, store, user: forget_memory(store, found.id, user_id=user, anew=True))
    echo("Forgot the memory {}.", found.id)
    _warn(gone.problems)


async def _id_of(tx: Transaction, given: str, user: str) -> str:
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


def _with(database: str | None, work: MemoriesWork[T], *, creates: bool = False, read_only: bool | None = None) -> T:
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


def _kind(text: str) -> MemoryType:
    kinds: tuple[MemoryType, ...] = get_args(MemoryType)
    for kind in kinds:
        if kind == text:
            return kind
    raise InvalidInput(reason=f"--type is {text!r}; allowed is {', '.join(kinds[:-1])} or {kinds[-1]}.")


def _print(found: Sequence[Memory], *, as_json: bool) -> None:
    if as_json:
        for memory in found:
            print_line(_json(memory))
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


def _json(memory: Memory) -> dict[str, Any]:
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


def _source(source: MemorySource) -> dict[str, Any]:
    read = {"read": source.origin.to_json()} if source.origin else {}
    return {"thread": source.thread_id, "seqs": list(source.seqs), **read}


def _warn(problems: Sequence[str]) -> None:
    for problem in problems:
        echo_made(problem)
