"""`longthread threads export` and `longthread threads import`: conversations as files, and back."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from longthread.cli import options
from longthread.cli.damaged import leave_damaged
from longthread.cli.named import find_thread
from longthread.cli.outfile import SQLITE, output
from longthread.cli.progress import counted, shown
from longthread.cli.screen import echo
from longthread.cli.whole import existing, is_there, run, some
from longthread.errors import InvalidInput, NotImported, RowDamaged
from longthread.model.markdown import markdown
from longthread.settings import Settings
from longthread.store import log
from longthread.store.archive import export_lines, why_not_whole
from longthread.store.archive_reader import check_beginning
from longthread.store.driver import Driver, Transaction
from longthread.store.foreign import shown_address
from longthread.store.importing import Into, check_import, import_threads
from longthread.store.open import is_postgres, open_store
from longthread.store.sqlite import APPLICATION_ID
from longthread.store.transfer import Outcome, thread_ids

if TYPE_CHECKING:
    from longthread.agent.takeover import Imported
    from longthread.agent.takeover import Progress as TakeoverProgress

_OURS = APPLICATION_ID.to_bytes(4, "big")
_STANDARD = "-"


class Format(StrEnum):
    """What an export is written as."""

    JSONL = "jsonl"
    MARKDOWN = "md"


def export(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[THREAD]…", help="Conversations: ids, beginnings of them, or last.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All conversations of the user.")] = False,
    to: Annotated[Path | None, typer.Option("--to", "-o", help="A file; standard output by default.")] = None,
    format_: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="jsonl, for import; or md, to read. By default as FILE's name."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE when it is there.")] = False,
    database: options.Database = None,
) -> None:
    """Write conversations to a file, with everything that is kept of them."""
    if names and everything:
        raise InvalidInput(reason="Name the conversations to export or give --all, not both.")
    if not names and not everything:
        raise InvalidInput(reason="Name the conversations to export, or give --all.")
    chosen = format_ or (Format.MARKDOWN if to is not None and to.suffix.lower() == ".md" else Format.JSONL)
    settings = Settings.load(database=database)

    damaged: dict[str, str] = {}
    """Where all are exported, what was left out; else what was written as it is."""

    async def work() -> int:
        async with existing(settings.database) as store:
            with output(to, settings.database, force=force) as file:
                return await _export(store, settings.user, file, names or [], chosen, damaged)

    count = run(work())
    if to is not None:
        echo(f"{counted(count, 'thread')} exported to {to}.", err=True)
    leave_damaged("exported" if everything else "exported whole", damaged)


async def _export(
    store: Driver, user: str, file: BinaryIO, names: Sequence[str], chosen: Format, damaged: dict[str, str]
) -> int:
    """Export the threads of these names, or all of the user's, and say how many. Damaged ones are noted in
    `damaged`: where all are exported they are passed over, and one that is named is written as it is."""
    ids = [str(await find_thread(store, name, user=user)) for name in names]
    # One snapshot for all: the file holds what there was at one moment.
    async with store.reading() as tx:
        if not names:
            while page := await thread_ids(tx, after=ids[-1] if ids else None, user_id=user):
                ids += page
        ids = list(dict.fromkeys(ids))
        if chosen is Format.JSONL:
            for thread_id in list(ids):
                if names:
                    await log.find_thread(tx, thread_id, user_id=user)  # it may have been deleted since it was named
                ids += await log.threads_below(tx, thread_id, user_id=user)
            ids = list(dict.fromkeys(ids))
            if not names:
                ids = await _whole(tx, ids, user, damaged)
            with shown("exporting") as progress:
                async for line in export_lines(tx, ids, progress, damaged if names else None):
                    file.write(line)
        else:
            for thread_id in ids:
                try:
                    thread = await log.find_thread(tx, thread_id, user_id=user)
                    entries = await log.branch(tx, thread_id, thread.tip, limit=max(1, thread.entry_count))
                except RowDamaged as error:
                    if names:
                        raise
                    damaged[thread_id] = str(error.details["reason"])
                    continue
                file.write(markdown(thread, entries).encode())
    return len(ids) - (len(damaged) if chosen is Format.MARKDOWN else 0)


async def _whole(tx: Transaction, ids: Sequence[str], user: str, damaged: dict[str, str]) -> list[str]:
    """Those of which nothing is damaged; of the others it is noted what is. An export says at its beginning how many
    threads follow, and so all are read before."""
    whole = []
    with shown("reading") as progress:
        for done, thread_id in enumerate(ids):
            progress(done, len(ids), thread_id)
            try:
                await log.find_thread(tx, thread_id, user_id=user)
                reason = await why_not_whole(tx, thread_id)
            except RowDamaged as error:
                reason = str(error.details["reason"])
            if reason is None:
                whole.append(thread_id)
            else:
                damaged[thread_id] = reason
    return whole


def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="An export, - for standard input, or a LangGraph checkpoint database: a file or a URL."
        ),
    ],
    as_id: Annotated[str | None, typer.Option("--as", metavar="NEW_ID", help="The id that it gets here.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Whose the conversations become.")] = None,
    database: options.Database = None,
) -> None:
    """Bring conversations back from an export, or in from a LangGraph checkpoint database."""
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
        taken = run(_take_over(settings.database, source, owner))
        echo(
            f"{counted(taken.threads, 'thread')}: {counted(taken.checkpoints - taken.already, 'checkpoint')} imported, "
            f"{taken.already:,} there already; both together have {counted(taken.writes, 'write')}."
        )
        return
    into = Into(owner, takes_over=user is not None, thread_id=as_id)
    with _input(source) as file:
        outcome = run(_import(settings.database, file, source, into))
    echo(f"{counted(outcome.written, 'thread')} imported, {outcome.same:,} there already.")
    if outcome.refused:
        raise NotImported(where=source, refused=some([str(refusal) for refusal in outcome.refused]))


async def _import(address: str, file: BinaryIO, where: str, into: Into) -> Outcome:
    check_beginning(file, where)
    if not await is_there(address):  # none is made for what is refused
        await check_import(file, where, into)
        file.seek(0)
    async with open_store(address) as store:
        with shown("importing") as progress:
            return await import_threads(store, file, where, into, progress)


async def _take_over(address: str, source: str, user: str) -> Imported:
    # Here and not above: LangGraph takes seconds to load, and an export needs none of it.
    from longthread.agent.checkpointer import LongthreadSaver
    from longthread.agent.takeover import check_stock, import_langgraph

    await check_stock(source)  # before a store is made for it
    async with open_store(address) as store:
        with shown("importing") as bar:

            def progress(at: TakeoverProgress) -> None:
                bar(at.done, at.total, at.thread_id)

            return await import_langgraph(source, LongthreadSaver(store, user_id=user), progress=progress)


def _is_sqlite(source: str) -> bool:
    if source == _STANDARD:
        return False
    if "://" in source:  # and it may hold a password
        raise InvalidInput(
            reason=f"{shown_address(source)} cannot be imported: it is neither a file nor a postgresql:// address."
        )
    with _input(source) as file:
        head = file.read(72)
    if head.startswith(SQLITE) and head[68:] == _OURS:
        raise InvalidInput(reason=f"{source} is a Longthread store. Copy it with `longthread db copy {source} TO`.")
    return head.startswith(SQLITE)


@contextmanager
def _input(source: str) -> Iterator[BinaryIO]:
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
