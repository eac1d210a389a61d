"""`longthread threads export` and `longthread export langgraph`: conversations as files, and in other databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from longthread.cli import options
from longthread.cli.find_thread import find_thread
from longthread.cli.language import say, translate
from longthread.cli.output_file import output
from longthread.cli.progress import count_noun, leave_damaged, leave_questions, show_progress
from longthread.cli.screen import echo, echo_data
from longthread.cli.terminal import print_line
from longthread.cli.whole_store import existing, run
from longthread.errors import ExportIncomplete, InvalidInput, RowDamaged
from longthread.settings import Settings
from longthread.store import log, questions
from longthread.store.driver import Driver, Transaction
from longthread.store.imports.foreign import shown_address
from longthread.store.transfer.archive import branch_markdown, export_lines, why_not_whole
from longthread.store.transfer.threads import thread_ids

if TYPE_CHECKING:
    from longthread.langgraph.transfer.export import ExportReport


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

    damaged: dict[str, str] = {}
    """Where all are exported, what was left out; else what was written as it is."""

    async def work() -> int:
        async with existing(settings) as store:
            with output(to, settings.database, force=force) as file:
                wanted = _Wanted(names or [], chosen, details)
                return await _export(store, settings.user, file, wanted, damaged)

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


async def _export(store: Driver, user: str, file: BinaryIO, wanted: _Wanted, damaged: dict[str, str]) -> int:
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
                ids = await _whole(tx, ids, user, damaged)
            with show_progress("exporting") as progress:
                async for line in export_lines(tx, ids, progress, damaged if names else None):
                    file.write(line)
            leave_questions(sum((await questions.counts(tx, ids)).values()))
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


async def _whole(tx: Transaction, ids: Sequence[str], user: str, damaged: dict[str, str]) -> list[str]:
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
        _show(where, report)
    if report.left:
        raise ExportIncomplete(where=where, reason=report.left[0], left=report.left)


def _show(where: str, report: ExportReport) -> None:
    for name, number in report.written.items():
        echo_data(f"  {count_noun(number, name[:-1])} {say('in')} {where}")
    for head, lines in (("Notes:", report.notes), ("Not written:", report.left)):
        if lines:
            echo(head)
        for line in lines:
            echo_data(f"  - {translate(line)}")
