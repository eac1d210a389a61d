"""`longthread db …`: the store as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from longthread.cli import options
from longthread.cli.commands.prune import prune_
from longthread.cli.language import say
from longthread.cli.progress import bytes_text, count_noun, leave_questions, show_progress
from longthread.cli.screen import Console, echo, echo_data, echo_made
from longthread.cli.terminal import print_line
from longthread.cli.whole_store import alone, existing, run, some
from longthread.errors import NotCopied
from longthread.settings import Settings
from longthread.store.maintenance.jobs import Job
from longthread.store.maintenance.status import StoreStatus, status_of
from longthread.store.open import open_store, refuse_same_place
from longthread.store.schema import SCHEMA_VERSION
from longthread.store.transfer.copy import CopyComparison, compare_stores, copy_store
from longthread.store.transfer.threads import Refusal, TransferOutcome

db = typer.Typer(help="Look at the store, bring it up to date, copy it, prune it, index it.", no_args_is_help=True)
db.command("prune")(prune_)


@db.command()
def upgrade(database: options.Database = None) -> None:
    """Bring the store's schema up to date. Whatever opens a store does that too."""

    async def work() -> str:
        settings = Settings.load(database=database)
        async with open_store(settings.database, read_only=settings.read_only) as store:
            found, now = store.found_version, SCHEMA_VERSION
            if found == now:
                return say("{} has schema version {}: nothing to do.", store.where, now)
            if found:
                return say("{}: version {} → {}", store.where, found, now)
            return say("{}: made, version {}", store.where, now)

    echo_data(run(work()))


@db.command()
def status(
    as_json: options.AsJson = False, database: options.Database = None, read_only: options.ReadOnly = None
) -> None:
    """What the store holds and how large it is, table by table. It changes nothing, not even an older schema."""

    async def work() -> StoreStatus:
        async with existing(Settings.load(database=database, read_only=read_only), migrates=False) as store:
            return await status_of(store)

    found = run(work())
    if as_json:
        print_line(_status_json(found))
    else:
        _print_status(found)


@db.command()
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The store to copy: a file, a URL, or embedded.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Where to: a file, a URL, or embedded.")],
    update: Annotated[
        bool, typer.Option("--update", help="Bring threads up to date that went on in FROM since an earlier copy.")
    ] = False,
    as_json: options.AsJson = False,
    read_only: Annotated[bool | None, typer.Option("--read-only", help="Read FROM as it is.")] = None,
) -> None:
    """Copy everything from one store to another. Stopped or killed, it goes on when it is given again."""
    settings, to = Settings.load(database=source, read_only=read_only), Settings.load(database=target)
    refuse_same_place(settings.database, to.database)

    async def work() -> tuple[TransferOutcome, CopyComparison, str]:
        # The option is for FROM; the setting is for both.
        async with existing(settings) as here, open_store(to.database, read_only=to.read_only) as there:
            with show_progress("copying") as progress:
                outcome = await copy_store(here, there, progress, update=update)
            with show_progress("comparing") as progress:
                return outcome, await compare_stores(here, there, progress), there.where

    outcome, found, where = run(work())
    refused = [refusal.what.removeprefix("thread ") for refusal in outcome.refused]
    went_on = [thread for thread in found.differing if thread not in refused]
    if as_json:
        print_line(asdict(outcome) | {"went_on": went_on, "threads": {"from": found.source, "to": found.target}})
    else:
        echo(
            "{} copied, {:,} brought up to date, {:,} there already; {} written.",
            count_noun(outcome.written, "thread"),
            outcome.updated,
            outcome.same,
            count_noun(outcome.rows, "row"),
        )
        if went_on:
            echo("Went on meanwhile: {}. Copy again with --update.", some(went_on))
        elif found.missing > sum(refusal.is_damaged for refusal in outcome.refused):
            echo("FROM has {}, and TO {:,}. Copy again.", count_noun(found.source, "thread"), found.target)
        elif not refused:
            echo("Both stores have as many rows of every thread.")
        leave_questions(outcome.questions_left)
    if outcome.refused:
        refusals = some([str(refusal) for refusal in outcome.refused])
        raise NotCopied(where=where, refused=refusals, remedy=_remedy(outcome.refused, update=update))


def _remedy(refused: Sequence[Refusal], *, update: bool) -> str:
    """What to do about what was not copied."""
    others = [refusal for refusal in refused if not refusal.is_damaged]
    of_others = _OF_THREADS if not update and any(map(_is_thread, others)) else _OF_REST
    of_damaged = [_OF_DAMAGED] if len(others) < len(refused) else []
    return " ".join(of_damaged + [of_others] * bool(others))


_OF_DAMAGED = "Threads with values that cannot be read or taken are damaged: mend them in FROM, or delete them there."
_OF_THREADS = (
    "Copy again with --update: it brings threads up to date that have not gone on there, and names those that have."
)
_OF_REST = "Delete it there and copy again, or copy to an empty database."


def _is_thread(refusal: Refusal) -> bool:
    return refusal.what.startswith("thread ")


@db.command()
def index(database: options.Database = None, as_json: options.AsJson = False) -> None:
    """Index every thread for recall and for the gateway, and give its entries vectors of the configured embedder.

    All that happens by itself, thread by thread; after an import, or with a new embedder, this does it at once.
    """
    # Here and not above: numpy and LangChain take time to load, and other commands do not need them.
    from longthread.gateway.rebuild import rebuild_missing
    from longthread.llm.embedders import embedder_of
    from longthread.memory.index.indexer import index_all

    settings = Settings.load(database=database)

    async def work() -> tuple[int, list[str]]:
        async with existing(settings) as store, alone(store, Job("index"), "indexing") as jobs:
            await rebuild_missing(store)
            with show_progress("indexing") as progress:
                return await index_all(store, embedder_of(settings), progress, jobs)

    threads, warnings = run(work())
    if as_json:
        print_line({"threads": threads, "warnings": warnings})
        return
    echo("{} indexed.", count_noun(threads, "thread"))
    for warning in warnings:
        echo_made(warning)


_TOLD = ("where", "dialect", "server", "schema", "latest", "bytes", "free", "live")
_COUNTED = {"threads": "thread", "entries": "entry", "checkpoints": "checkpoint", "runs": "run"}


def _status_json(found: StoreStatus) -> dict[str, Any]:
    told = {name: getattr(found, name) for name in _TOLD}
    told |= {name: found.rows.get(name, 0) for name in _COUNTED}
    tables = {name: {"rows": rows, "bytes": found.tables.get(name)} for name, rows in found.rows.items()}
    return told | {"tables": tables}


def _print_status(found: StoreStatus) -> None:
    console = Console()
    older = found.schema < found.latest
    schema = str(found.schema) + say(" (`longthread db upgrade` brings it to {})", found.latest) * older
    console.print(found.where, highlight=False, markup=False)
    console.print(say("{}, schema version {}", found.server, schema), highlight=False, markup=False)
    size = bytes_text(found.bytes) + (say(", {} of it free", bytes_text(found.free)) if found.free else "")
    console.print(say("{} on disk", size), highlight=False)
    held = say(", ").join(count_noun(found.rows.get(name, 0), one) for name, one in _COUNTED.items())
    console.print(say("{}, {:,} under way", held, found.live), highlight=False)
    table = Table(box=None, pad_edge=False)
    table.add_column(say("table"))
    for column in ("rows", "on disk"):
        table.add_column(say(column), justify="right")
    for name, count in found.rows.items():
        table.add_row(name, f"{count:,}", bytes_text(found.tables[name]) if name in found.tables else "")
    console.print(table)
