"""`longthread import`, `longthread export langgraph` and `longthread threads export`: conversations in and out.

They come from an export or from the database of another program, and go to files or to another database.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from longthread.cli import options
from longthread.cli.language import say, translate
from longthread.cli.options import find_thread
from longthread.cli.server_choice import chosen_server
from longthread.cli.terminal import echo, echo_data, print_line
from longthread.cli.whole_store import (
    SQLITE,
    count_noun,
    existing,
    is_there,
    leave_damaged,
    leave_questions,
    output,
    run,
    show_progress,
    some,
)
from longthread.errors import ExportIncomplete, ImportIncomplete, InvalidInput, NotImported, RowDamaged
from longthread.settings import Settings
from longthread.store import log, wait_list
from longthread.store.driver import Driver, Transaction
from longthread.store.open import is_postgres, open_store
from longthread.store.schema import APPLICATION_ID
from longthread.store.transfer.archive import branch_markdown, export_lines, why_not_whole
from longthread.store.transfer.archive_reader import ImportTarget, check_beginning, check_import, import_threads
from longthread.store.transfer.foreign import shown_address
from longthread.store.transfer.threads import TransferOutcome, thread_ids

if TYPE_CHECKING:
    from longthread.cli.remote.logins import ServerLogin
    from longthread.langgraph.transfer.export import ExportReport
    from longthread.store.transfer.foreign import ImportReport
    from longthread.store.transfer.kinds import DatabaseKinds

_OURS = APPLICATION_ID.to_bytes(4, "big")
_STANDARD = "-"


def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|URL",
            help="An export, - for standard input, or another program's database: a SQLite file or a URL.",
        ),
    ],
    as_id: Annotated[str | None, typer.Option("--as", metavar="NEW_ID", help="The id that it gets here.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Whose all of them become.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be taken, and what cannot be.")
    ] = False,
    user_keys: Annotated[
        list[str] | None,
        typer.Option(
            "--user-key",
            metavar="KEY",
            help="A key of LangGraph's metadata that names a thread's user: by default langgraph_auth_user_id, else "
            "user_id. May be repeated.",
        ),
    ] = None,
    serde: options.Serde = None,
    allow_pickle: options.AllowPickle = False,
    aes: options.Aes = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Bring conversations back from an export, or in from another program's database, which is recognised."""
    settings = Settings.load(database=database)
    owner = user or settings.user
    if not source:
        raise InvalidInput(
            reason="The name of the file to import is empty. Give a file, a URL, or - for standard input."
        )
    if as_id == "":
        raise InvalidInput(reason="The id that --as gives is empty. Give one.")
    if is_postgres(source) or _is_sqlite(source):
        if as_id is not None:
            raise InvalidInput(reason="--as is for an export of one conversation; here all come in with their ids.")
        given = ForeignOptions(owner, user is not None, user_keys or None, serde, allow_pickle, aes)
        kinds, report = run(_take_over(settings, source, given, dry_run))
        _print_report(source, kinds, report, owner, dry_run=dry_run, as_json=as_json)
        return
    into = ImportTarget(owner, takes_over=user is not None, thread_id=as_id)
    with _open_input(source) as file:
        if dry_run:
            check_beginning(file, source)
            run(check_import(file, source, into))
            echo("This export can be imported. Nothing was written.")
            return
        outcome = run(_import_file(settings, file, source, into))
    echo("{} imported, {:,} there already.", count_noun(outcome.written, "thread"), outcome.same)
    if outcome.refused:
        raise NotImported(where=source, refused=some([str(refusal) for refusal in outcome.refused]))


async def _import_file(settings: Settings, file: BinaryIO, where: str, into: ImportTarget) -> TransferOutcome:
    check_beginning(file, where)
    if not await is_there(settings.database):  # none is made for what is refused
        await check_import(file, where, into)
        file.seek(0)
    async with open_store(settings.database, read_only=settings.read_only) as store:
        with show_progress("importing") as progress:
            return await import_threads(store, file, where, into, progress)


@dataclass(frozen=True, slots=True)
class ForeignOptions:
    """How another program's database is read, and whose its threads become."""

    owner: str
    takes_over: bool
    user_keys: Sequence[str] | None
    serde: str | None
    pickle: bool
    aes: bool


async def _take_over(
    settings: Settings, source: str, given: ForeignOptions, dry_run: bool
) -> tuple[DatabaseKinds, ImportReport]:
    # Here and not above: LangGraph takes seconds to load, and an export needs none of it.
    from longthread.langgraph.transfer.import_checkpoints import USER_KEYS
    from longthread.langgraph.transfer.import_database import Import
    from longthread.langgraph.transfer.stock_savers import serializer

    taking = Import(
        source,
        user=given.owner,
        takes_over=given.takes_over,
        user_keys=given.user_keys or USER_KEYS,
        serde=serializer(at=given.serde, pickle=given.pickle, aes=given.aes),
    )
    if dry_run:
        with show_progress("looking") as progress:
            return await taking.look(progress)
    await taking.check()  # before a store is made for it
    async with open_store(settings.database, read_only=settings.read_only) as store:
        with show_progress("importing") as progress:
            return await taking.into(store, progress)


def _print_report(
    source: str, kinds: DatabaseKinds, report: ImportReport, owner: str, *, dry_run: bool, as_json: bool
) -> None:
    """Say what came of it.

    Raises:
        ImportIncomplete: something could not be taken.
    """
    missing = [] if dry_run else [name for name in report.there if report.here[name] < report.there[name]]
    if as_json:
        print_line(
            {
                "kinds": kinds.names,
                "dry_run": dry_run,
                "there": dict(report.there),
                "here": dict(report.here),
                "already": dict(report.already),
                "users": dict(report.users),
                "notes": dict(report.notes),
                "left": report.left,
            }
        )
    else:
        _show_import(source, kinds, report, owner, dry_run=dry_run)
    if report.left or missing:
        counts = "; ".join(f"{report.here[name]:,} of {report.there[name]:,} {name}" for name in missing)
        reason = (
            f"{len(report.left):,} could not be taken, the first: {report.left[0]}" if report.left else "counts differ"
        )
        said = f"{reason.rstrip('.')}. Here are {counts}." if counts else f"{reason.rstrip('.')}."
        raise ImportIncomplete(where=shown_address(source), reason=said)


def _show_import(source: str, kinds: DatabaseKinds, report: ImportReport, owner: str, *, dry_run: bool) -> None:
    echo_data(f"{shown_address(source)}: {', '.join(kinds.names)}.")
    for name, there in report.there.items():
        if dry_run:
            echo_data(f"  {there:>9,} {say(name)}")
        else:
            already = say(" ({:,} already)", report.already[name]) if report.already[name] else ""
            echo_data(f"  {there:>9,} " + say("{} there, {:,} here{}", say(name), report.here[name], already))
    _print_lines(
        "Notes:",
        [
            say("{} ({:,} times)", translate(text), times) if times > 1 else translate(text)
            for text, times in report.notes.items()
        ],
    )
    others = {user: threads for user, threads in report.users.items() if user not in (owner, "")}
    if others:
        told = [
            say("{}: {}; LONGTHREAD_USER={} shows them", user, count_noun(threads, "thread"), user)
            for user, threads in others.items()
        ]
        _print_lines("Of other users:", told)
    _print_lines("Not taken:", report.left)
    if dry_run:
        echo("Nothing was written.")


def _print_lines(head: str, lines: Sequence[str]) -> None:
    if lines:
        echo(head)
    for line in lines:
        echo_data(f"  - {translate(line)}")


def _is_sqlite(source: str) -> bool:
    if source == _STANDARD:
        return False
    if "://" in source:  # and it may hold a password
        raise InvalidInput(
            reason=f"{shown_address(source)} cannot be imported: it is neither a file nor a postgresql:// address."
        )
    with _open_input(source) as file:
        head = file.read(72)
    if head.startswith(SQLITE) and head[68:] == _OURS:
        raise InvalidInput(reason=f"{source} is a Longthread store. Copy it with `longthread db copy {source} TO`.")
    return head.startswith(SQLITE)


@contextmanager
def _open_input(source: str) -> Iterator[BinaryIO]:
    """The file to import. It is read twice, and so standard input is kept in a file of our own meanwhile."""
    if source == _STANDARD:
        with tempfile.TemporaryFile() as kept:
            shutil.copyfileobj(sys.stdin.buffer, kept)
            kept.seek(0)
            yield kept
        return
    try:
        file = Path(source).open("rb")  # noqa: SIM115  # errors of the block are not those of opening
    except OSError as error:
        raise InvalidInput(reason=f"{source} cannot be read: {error.strerror}.") from error
    with file:
        yield file


class ExportFormat(StrEnum):
    """What an export is written as."""

    JSONL = "jsonl"
    MARKDOWN = "md"


def export_threads(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[THREAD]…", help="Conversations: ids, beginnings of them, or last.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All conversations of the user.")] = False,
    to: Annotated[Path | None, typer.Option("--to", "-o", help="A file; standard output by default.")] = None,
    format_: Annotated[
        ExportFormat | None,
        typer.Option("--format", "-f", help="jsonl, for import; or md, to read. By default as FILE's name."),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="md: also calls, what was thought beside them, and ids.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE when it is there.")] = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """Write conversations to a file, with everything that is kept of them."""
    if names and everything:
        raise InvalidInput(reason="Name the conversations to export or give --all, not both.")
    if not names and not everything:
        raise InvalidInput(reason="Name the conversations to export, or give --all.")
    chosen = format_ or (ExportFormat.MARKDOWN if to is not None and to.suffix.lower() == ".md" else ExportFormat.JSONL)
    if details and chosen is not ExportFormat.MARKDOWN:
        raise InvalidInput(reason="--details is for Markdown: give --format md, or leave it out. JSONL has everything.")
    settings = Settings.load(database=database, read_only=read_only)

    if (login := chosen_server()) is not None:
        if names is None or len(names) != 1:
            raise InvalidInput(reason="A server exports one conversation at a time. Name it.")
        _export_of_server(login, names[0], to, _Wanted(names, chosen, details), force=force)
        return
    damaged: dict[str, str] = {}
    """Where all are exported, what was left out; else what was written as it is."""

    async def work() -> int:
        async with existing(settings) as store:
            with output(to, settings.database, force=force) as file:
                wanted = _Wanted(names or [], chosen, details)
                return await _export_threads(store, settings.user, file, wanted, damaged)

    count = run(work())
    if to is not None:
        echo("{} exported to {}.", count_noun(count, "thread"), to, err=True)
    leave_damaged("exported" if everything else "exported whole", damaged)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is exported: the threads of these names, or all; `details` in Markdown."""

    names: Sequence[str]
    format: ExportFormat
    details: bool


def _export_of_server(login: ServerLogin, name: str, to: Path | None, wanted: _Wanted, *, force: bool) -> None:
    """Export a conversation of a server, with those below it where the format has them."""
    from longthread.cli.remote.client import ServerClient, at, work_on_server

    async def work(client: ServerClient) -> None:
        path = at(str(await client.find_thread(name)), "export")
        with output(to, Settings.load().database, force=force) as file:
            await client.download(path, file, format=wanted.format.value, details=str(wanted.details).lower())

    work_on_server(login, work)
    if to is not None:
        echo("{} exported to {}.", count_noun(1, "thread"), to, err=True)


async def _export_threads(store: Driver, user: str, file: BinaryIO, wanted: _Wanted, damaged: dict[str, str]) -> int:
    """Export the threads of these names, or all of the user's, and say how many. Damaged ones are noted in
    `damaged`: where all are exported they are passed over, and one that is named is written as it is."""
    names, chosen = wanted.names, wanted.format
    ids = [str(await find_thread(store, name, user=user)) for name in names]
    # One snapshot for all: the file holds what there was at one moment.
    async with store.reading() as tx:
        if not names:
            while page := await thread_ids(tx, after=ids[-1] if ids else None, user_id=user):
                ids += page
        ids = list(dict.fromkeys(ids))
        if chosen is ExportFormat.JSONL:
            for thread_id in list(ids):
                if names:
                    await log.find_thread(tx, thread_id, user_id=user)  # it may have been deleted since it was named
                ids += await log.threads_below(tx, thread_id, user_id=user)
            ids = list(dict.fromkeys(ids))
            if not names:
                ids = await _find_whole(tx, ids, user, damaged)
            with show_progress("exporting") as progress:
                async for line in export_lines(tx, ids, progress, damaged if names else None):
                    file.write(line)
            leave_questions(sum((await wait_list.counts(tx, ids)).values()))
        else:
            for thread_id in ids:
                try:
                    thread = await log.find_thread(tx, thread_id, user_id=user)
                    entries = await log.branch(tx, thread_id, thread.tip, limit=max(1, thread.entry_count))
                    text = await branch_markdown(tx, thread, entries, details=wanted.details)
                except RowDamaged as error:
                    if names:
                        raise
                    damaged[thread_id] = error.reason
                    continue
                file.write(text.encode())
    return len(ids) - (len(damaged) if chosen is ExportFormat.MARKDOWN else 0)


async def _find_whole(tx: Transaction, ids: Sequence[str], user: str, damaged: dict[str, str]) -> list[str]:
    """Return the threads without damage; `damaged` receives the others, each with the reason. An export says at its
    beginning how many threads follow, and so this reads all of them before."""
    whole = []
    with show_progress("reading") as progress:
        for done, thread_id in enumerate(ids):
            progress(done, len(ids), thread_id)
            try:
                await log.find_thread(tx, thread_id, user_id=user)
                reason = await why_not_whole(tx, thread_id)
            except RowDamaged as error:
                reason = error.reason
            if reason is None:
                whole.append(thread_id)
            else:
                damaged[thread_id] = reason
    return whole


export = typer.Typer(
    name="export", help="Write to the databases of other programs.", no_args_is_help=True, rich_markup_mode="rich"
)


@export.callback()
def _root() -> None:
    """Write to the databases of other programs."""


@export.command("langgraph")
def langgraph(
    to: Annotated[
        str, typer.Option("--to", metavar="ADDRESS", help="sqlite:///FILE or a postgresql:// address; made if needed.")
    ],
    user: Annotated[str | None, typer.Option("--user", help="Only the threads and items of this user.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Write threads and items anew that are there and differ.")
    ] = False,
    serde: options.Serde = None,
    allow_pickle: options.AllowPickle = False,
    aes: options.Aes = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """Write LangGraph threads and items to the database of a SqliteSaver or PostgresSaver, which goes on with them."""
    # Here and not above: LangGraph takes seconds to load, and help needs none of it.
    from longthread.langgraph.transfer.export import export_users
    from longthread.langgraph.transfer.stock_savers import serializer

    settings = Settings.load(database=database, read_only=read_only)
    chosen = serializer(at=serde, pickle=allow_pickle, aes=aes)

    async def work() -> ExportReport:
        async with existing(settings) as store:
            with show_progress("exporting") as progress:
                return await export_users(store, to, progress, user=user, replaces=replace, serde=chosen)

    report = run(work())
    where = shown_address(to.removeprefix("sqlite:///"))
    if as_json:
        print_line({"to": where, "written": dict(report.written), "notes": report.notes, "left": report.left})
    else:
        _show_export(where, report)
    if report.left:
        raise ExportIncomplete(where=where, reason=report.left[0], left=report.left)


def _show_export(where: str, report: ExportReport) -> None:
    for name, number in report.written.items():
        echo_data(f"  {count_noun(number, name[:-1])} {say('in')} {where}")
    for head, lines in (("Notes:", report.notes), ("Not written:", report.left)):
        if lines:
            echo(head)
        for line in lines:
            echo_data(f"  - {translate(line)}")
