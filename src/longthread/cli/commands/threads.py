"""`longthread threads …` and `longthread state`: what is kept, and how to look at it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.markup import escape
from rich.table import Table

from longthread.cli import options
from longthread.cli.language import say
from longthread.cli.lazy import lazy_group
from longthread.cli.options import find_thread
from longthread.cli.server_choice import chosen_server
from longthread.cli.terminal import Console, confirm, echo, echo_data, echo_made, join_by_tabs, print_line
from longthread.cli.whole_store import count_noun, existing, leave_damaged
from longthread.context.citations import result_labels
from longthread.model.content import is_wire, unpack
from longthread.model.entry import Entry
from longthread.model.fold import state_of
from longthread.model.run import Approval
from longthread.model.thread import Archived, Thread
from longthread.runs.worker import may_be_alive
from longthread.settings import Settings
from longthread.store import attributes, gateway, listing, log, memories, summaries, wait_list
from longthread.store.driver import Driver, Row, Transaction
from longthread.store.runs import last_run
from longthread.view.condense import condense_result

if TYPE_CHECKING:
    from longthread.cli.remote.client import ServerClient

T = TypeVar("T")
_OF_THREAD = ("user_id", "tip", "first_seq", "tool_categories", "titled")
_OF_ENTRY = ("seq", "parent_seq", "replaces", "payload", "tokens", "latency_ms", "name")
_NOT_OF_SERVER = frozenset((*_OF_THREAD, *_OF_ENTRY))
"""Fields of a thread and of an entry that a server does not tell."""
_Name = Annotated[str, typer.Argument(help="The conversation: its id, the beginning of it, or last.")]

threads = typer.Typer(
    cls=lazy_group(
        {
            "export": "longthread.cli.commands.transfer:export_threads",
            "import": "longthread.cli.commands.transfer:import_",
            "result": "longthread.cli.commands.runs:result",
            "chart": "longthread.cli.commands.runs:chart",
            "runs": "longthread.cli.commands.runs:runs",
            "tag": "longthread.cli.commands.annotations:tag",
            "metadata": "longthread.cli.commands.annotations:metadata",
            "expire": "longthread.cli.commands.annotations:expire",
            "list": "longthread.cli.commands.threads:list_",
            "search": "longthread.cli.commands.threads:search",
            "show": "longthread.cli.commands.threads:show",
            "rename": "longthread.cli.commands.threads:rename",
            "archive": "longthread.cli.commands.annotations:archive",
            "unarchive": "longthread.cli.commands.annotations:unarchive",
            "pin": "longthread.cli.commands.annotations:pin",
            "unpin": "longthread.cli.commands.annotations:unpin",
            "delete": "longthread.cli.commands.threads:delete",
        }
    ),
    help="List, show, search, rename, tag, pin, archive, delete, export and import conversations.",
    no_args_is_help=True,
)


def list_(
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    children: Annotated[bool, typer.Option("--children", help="Also those that agents have with each other.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Those that are archived.")] = False,
    pinned: Annotated[bool, typer.Option("--pinned", help="Those that are pinned.")] = False,
    tag: Annotated[str, typer.Option("--tag", help="Those that have this tag.")] = "",
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """The conversations, the latest first."""

    damaged: dict[str, str] = {}

    async def read(store: Driver, user: str) -> tuple[str, list[_Listed]]:
        async with store.reading() as tx:
            among: Archived = "only" if archived else "exclude"
            some: dict[str, Any] = {"below": children, "archived": among, "pinned": pinned, "tag": tag}
            found = await listing.list_threads(tx, user_id=user, limit=limit, **some, unreadable=damaged)
            return user, await _list_rows(tx, [(thread, "") for thread in found], user)

    async def read_there(client: ServerClient) -> tuple[str, list[_Listed]]:
        from longthread.cli.remote.thread_calls import list_threads

        among: dict[str, Any] = {"children": children, "archived": "only" if archived else "exclude"}
        found = await list_threads(client, limit, damaged, pinned=pinned, tag=tag, **among)
        return client.login.user, [_Listed(*each) for each in found]

    user, found = _work_in_store(database, read, read_there, read_only=read_only)
    if not (found or damaged) and chosen_server() is not None:
        echo("The user {} has no such conversations on this server.", user, err=True)
    elif not (found or damaged):
        echo("The user {} has no such conversations here. LONGTHREAD_USER names another user.", user, err=True)
    _print_threads(found, as_json=as_json)
    leave_damaged("listed", damaged)


def search(
    text: Annotated[str, typer.Argument(help="What to look for in titles, tags, questions and answers.")],
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    archived: Annotated[bool, typer.Option("--archived", help="Also in those that are archived.")] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """The conversations that hold a text."""

    damaged: dict[str, str] = {}

    async def read(store: Driver, user: str) -> list[_Listed]:
        async with store.reading() as tx:
            among: Archived = "include" if archived else "exclude"
            found = await listing.search_threads(
                tx, text, user_id=user, limit=limit, archived=among, unreadable=damaged
            )
            hits = [(thread, _cut_around(hit.text, text)) for thread, hit in found]
            return await _list_rows(tx, hits, user)

    async def read_there(client: ServerClient) -> list[_Listed]:
        from longthread.cli.remote.thread_calls import list_threads

        among = "include" if archived else "exclude"
        return [_Listed(*each) for each in await list_threads(client, limit, damaged, q=text, archived=among)]

    _print_threads(_work_in_store(database, read, read_there, read_only=read_only), as_json=as_json)
    leave_damaged("listed", damaged)


def show(
    thread: _Name,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """A conversation, entry by entry; long results are cut (--json and export give them whole)."""
    found, entries, noted, waiting, below, asking, client = _work_in_store(
        database,
        lambda store, user: _load_thread(store, user, thread),
        lambda client: _load_there(client, thread),
        read_only=read_only,
    )
    if as_json:
        for entry in entries:
            print_line(_entry_json(entry) | ({"noted": noted[entry.seq]} if entry.seq in noted else {}))
        return
    console = Console()
    console.print(
        f"[bold]{escape(found.title or '')}[/bold]  [dim]{escape(found.id)}  {escape(found.source or '')}[/dim]"
    )
    if client is not None:
        calls = count_noun(client[1], "call")
        told = say("through the gateway: {}, {} (longthread view {} --call N)", client[0], calls, found.id)
        console.print(told, style="dim", markup=False, highlight=False, soft_wrap=True)
    for line in _list_notes(found):
        console.print(line, style="dim", markup=False, highlight=False)
    if found.parent_id is not None:
        console.print(f"[dim]{escape(say('asked for in {}', found.parent_id))}[/dim]")
    for entry in entries:
        label = "".join(f"[{each}]" for each in result_labels([entry])) if entry.role == "tool" else entry.kind or ""
        console.print(f"\n[cyan]{entry.role}[/cyan] [dim]{_format_time(entry.created_at)} {escape(label)}[/dim]")
        text = condense_result(entry.shown_text, 300) if entry.role == "tool" else entry.shown_text
        console.print(text, markup=False, highlight=False)
        for call in entry.tool_calls:
            console.print(f"› {call.name} {json.dumps(dict(call.args), ensure_ascii=False)}", markup=False)
        if entry.seq in noted:
            console.print(_describe_metadata(noted[entry.seq]), style="dim", markup=False)
    for asked in waiting:
        args = json.dumps(dict(asked.args), ensure_ascii=False)
        line = say("waiting for approval: {} {}  {}", asked.tool, args, asked.call_id)
        console.print(f"\n‖ {line}", markup=False, highlight=False)
    for each in below:
        line = say("asked for here: {}  {}", each.title or "", each.id)
        console.print(f"\n[dim]{escape(line)}[/dim]", soft_wrap=True)
    for thread_id in asking:
        line = say("below, a call waits for approval: longthread approve {}", thread_id)
        console.print(f"\n‖ {line}", markup=False, highlight=False, soft_wrap=True)


def rename(thread: _Name, title: str, database: options.Database = None) -> None:
    """Give a conversation another title."""

    async def write(store: Driver, user: str) -> None:
        thread_id = await find_thread(store, thread, user=user)
        async with store.writing() as tx:
            await log.rename_thread(tx, str(thread_id), title, user_id=user)

    async def write_there(client: ServerClient) -> None:
        from longthread.cli.remote.client import at

        await client.send("PATCH", at(str(await client.find_thread(thread))), {"label": title})

    _work_in_store(database, write, write_there)


def delete(
    thread: _Name,
    with_memories: Annotated[
        bool, typer.Option("--with-memories", help="Forget what was remembered from it, too.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    database: options.Database = None,
) -> None:
    """Delete a conversation, and write the store's files anew without it. What was remembered from it stays.

    With --with-memories it is what `longthread forget --thread` does. It cannot be undone, and takes as long as the
    store is large.
    """

    async def look(store: Driver, user: str) -> tuple[Row, int | None, int, int]:
        thread_id = str(await find_thread(store, thread, user=user))
        async with store.reading() as tx:
            found = await log.find_row(tx, thread_id, user_id=user)  # something of it may be damaged
            count = await log.count_entries(tx, thread_id)
            below = await log.threads_below(tx, thread_id, user_id=user)
            said = await memories.of_threads(tx, [thread_id, *below], user_id=user)
            return found, count, len(below), len(said)

    async def look_there(client: ServerClient) -> tuple[Row, int | None, int, int]:
        from longthread.cli.remote.client import at

        thread_id = str(await client.find_thread(thread))
        found = await client.get("/api/chat/history", thread_id=thread_id, limit=1)
        said = (await client.get(at(thread_id, "memory")))["only_here"]
        below = (await client.get("/api/conversations", parent=thread_id, limit=200))["conversations"]
        return {"id": thread_id, "title": found["label"]}, None, len(below), len(said)

    found, count, below, said = _work_in_store(database, look, look_there)
    remembered = count_noun(said, "memory")
    if not yes:
        besides = say(" and {} below it", count_noun(below, "conversation")) if below else ""
        stays = "" if with_memories or not said else say(" What was remembered from it ({}) stays.", remembered)
        gone = say(", and what was remembered from it ({})", remembered) if with_memories and said else ""
        if count is None:  # a server does not tell it
            confirm("Delete “{}”{}{}?{}", found["title"], besides, gone, stays)
        else:
            confirm("Delete “{}” with its {} entries{}{}?{}", found["title"], count, besides, gone, stays)

    async def write(store: Driver, user: str) -> None:
        # Here and not above: what forgets loads all that is derived from entries, and a list needs none of it.
        from longthread.memory.forget import forget_thread

        gone = await forget_thread(store, found["id"], user_id=user, with_memories=with_memories, anew=True)
        if gone.kept:
            echo("What was remembered from it ({}) stays: see `longthread memories list`.", remembered)
        for problem in gone.problems:
            echo_made(problem)

    async def write_there(client: ServerClient) -> None:
        from longthread.cli.remote.client import at

        await client.send("DELETE", at(found["id"]), query={"memories": "delete" if with_memories else "keep"})
        if said and not with_memories:
            echo("What was remembered from it ({}) stays: see `longthread memories list`.", remembered)

    _work_in_store(database, write, write_there)


def state(thread: _Name, database: options.Database = None, read_only: options.ReadOnly = None) -> None:
    """What a conversation has come to, as JSON: messages, steps, known tables, queries, errors, the answer."""

    async def read(store: Driver, user: str) -> dict[str, Any]:
        found, entries = await _read_entries(store, user, thread)
        async with store.reading() as tx:
            return state_of(entries, await summaries.find_compressed(tx, found.id))

    async def read_there(client: ServerClient) -> dict[str, Any]:
        return await client.get("/api/state", thread_id=str(await client.find_thread(thread)))

    found = _work_in_store(database, read, read_there, read_only=read_only)
    echo_data(json.dumps(found, ensure_ascii=False, indent=2))


def _work_in_store(
    database: str | None,
    action: Callable[[Driver, str], Awaitable[T]],
    there: Callable[[ServerClient], Awaitable[T]],
    *,
    read_only: bool | None = None,
) -> T:
    """Do something with the store, or `there`, on the server that was chosen."""
    if (login := chosen_server()) is not None:
        from longthread.cli.remote.client import work_on_server

        return work_on_server(login, there)
    settings = Settings.load(database=database, read_only=read_only)

    async def work() -> T:
        async with existing(settings) as store:
            return await action(store, settings.user)

    return asyncio.run(work())


async def _read_entries(store: Driver, user: str, given: str) -> tuple[Thread, list[Entry]]:
    thread_id = str(await find_thread(store, given, user=user))
    async with store.reading() as tx:
        thread = await log.find_thread(tx, thread_id, user_id=user)
        return thread, await log.branch(tx, thread_id, thread.tip, limit=max(1, thread.entry_count))


_Loaded = tuple[
    Thread,
    Sequence[Entry],
    Mapping[int, Mapping[str, Any]],
    Sequence[Approval],
    Sequence[Thread],
    Sequence[str],
    tuple[str, int] | None,
]


async def _load_there(client: ServerClient, given: str) -> _Loaded:
    from longthread.cli.remote.thread_calls import show_thread

    return (*await show_thread(client, str(await client.find_thread(given))), None)


async def _load_thread(store: Driver, user: str, given: str) -> _Loaded:
    """A thread, its entries, what was noted about them, the calls that wait for a decision, the threads below, those of
    them, at whatever depth, where calls wait, and the gateway's client with the number of its calls."""
    thread, entries = await _read_entries(store, user, given)
    async with store.reading() as tx:
        run = await last_run(tx, thread.id)
        waits = run is not None and run.status == "waiting"
        waiting = await wait_list.pending(tx, thread.id, run.id) if run and waits else []
        asking = (await wait_list.below(tx, user_id=user)).get(thread.id, [])
        noted = await attributes.message_metadata(tx, thread.id, first=thread.first_seq, last=thread.entry_count)
        below = await listing.children(tx, thread.id, user_id=user)
        return thread, entries, noted, waiting, below, asking, await gateway.client_of(tx, thread.id)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A thread in a list: the place that a search found, how the last run stands (None without one), and the threads
    below where calls wait for approval."""

    thread: Thread
    hit: str
    status: str | None
    waiting_below: Sequence[str] = ()

    @property
    def unfinished_status(self) -> str:
        """The status, unless all is well here and below."""
        if self.status in {None, "finished"}:
            return "waiting below" if self.waiting_below else ""
        return str(self.status)


async def _list_rows(tx: Transaction, found: Sequence[tuple[Thread, str]], user: str) -> list[_Listed]:
    statuses = await listing.latest_runs(tx, [thread for thread, _ in found], user_id=user, alive=may_be_alive)
    below = await wait_list.below(tx, user_id=user)
    return [_Listed(thread, hit, statuses.get(thread.id), below.get(thread.id, ())) for thread, hit in found]


def _print_threads(found: Sequence[_Listed], *, as_json: bool) -> None:
    if as_json:
        for each in found:
            more = {"waiting_below": each.waiting_below} if each.waiting_below else {}
            known = _leave_out_unknown(asdict(each.thread))
            print_line(known | {"status": each.status} | ({"hit": each.hit} if each.hit else {}) | more)
        return
    console = Console()
    if not console.is_terminal:
        for each in found:
            thread, size, at = each.thread, str(each.thread.entry_count), _format_time(each.thread.updated_at)
            fields = (thread.id, thread.title, size, at, thread.source, each.unfinished_status)
            echo_data(join_by_tabs(field or "" for field in fields))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("title", "entries", "last active", "status", "source"):
        table.add_column(say(column), overflow="ellipsis", no_wrap=column != "title")
    table.add_column("id", no_wrap=True)
    for each in found:
        thread = each.thread
        title = (
            ("↳ " if thread.parent_id else "")
            + escape(thread.title or "")
            + (f"  [dim]{escape(' '.join(f'#{tag}' for tag in thread.tags))}[/dim]" if thread.tags else "")
            + (f"\n[dim]{escape(each.hit)}[/dim]" if each.hit else "")
        )
        source = escape((thread.source or "").rsplit("/", 1)[-1])
        table.add_row(
            title,
            str(thread.entry_count),
            _format_time(thread.updated_at),
            say(each.unfinished_status),
            source,
            escape(thread.id),
        )
    nothing = say("No conversations yet. Try: longthread ask … --source demo")
    console.print(table if found else f"[dim]{nothing}[/dim]")


def _cut_around(text: str, wanted: str) -> str:
    place = max(0, text.lower().find(wanted.lower()))
    start = max(0, place - 30)
    return " ".join(text[start : place + len(wanted) + 50].split())


def _entry_json(entry: Entry) -> dict[str, Any]:
    data = asdict(entry)
    data["payload"] = _payload_json(entry)
    data["created_at"] = entry.created_at.isoformat()
    return _leave_out_unknown(data)


def _leave_out_unknown(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a thread or an entry what a server does not tell, if it is a server's."""
    lacks = _NOT_OF_SERVER if chosen_server() is not None else frozenset()
    return {name: value for name, value in data.items() if name not in lacks}


def _list_notes(thread: Thread) -> list[str]:
    """What people noted about a thread, a line each."""
    noted = [say("pinned: {}", _format_time(thread.pinned_at))] if thread.pinned_at else []
    noted += [say("tags: {}", ", ".join(thread.tags))] if thread.tags else []
    noted += [_describe_metadata(thread.metadata)] if thread.metadata else []
    return noted + ([say("expires: {}", _format_time(thread.expires_at))] if thread.expires_at else [])


def _describe_metadata(values: Mapping[str, Any]) -> str:
    return say("metadata: {}", json.dumps(dict(values), ensure_ascii=False))


def _payload_json(entry: Entry) -> str | dict[str, str] | None:
    """A payload so that its bytes can be had back: JSON as its text, a packed one (its first byte is 0) in base64; of
    the gateway's the blocks as they were, as the text of a JSON list."""
    payload = entry.full_payload
    if payload is None:
        return None
    with suppress(ValueError):  # it is damaged, or no UTF-8
        if is_wire(payload):
            dialect, blocks = unpack(payload, entry.text)
            return {"dialect": dialect, "blocks": blocks}
        if not payload.startswith(b"\0"):
            return payload.decode("utf-8")
    return {"base64": base64.b64encode(payload).decode("ascii")}


def _format_time(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")
