"""`longthread db …` and `longthread gateway cleanup`: the store as a whole, retention, and expired conversations."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from longthread.cli import options
from longthread.cli.commands.backup import backup, restore
from longthread.cli.language import say
from longthread.cli.options import age
from longthread.cli.terminal import Console, confirm, echo, echo_data, echo_made, print_line
from longthread.cli.whole_store import (
    alone,
    bytes_text,
    count_noun,
    existing,
    leave_damaged,
    leave_questions,
    run,
    show_progress,
    some,
)
from longthread.errors import InvalidInput, NotCopied
from longthread.runs.worker import may_be_alive
from longthread.settings import Settings
from longthread.store.driver import Transaction
from longthread.store.maintenance.deletions import Pruned, prune
from longthread.store.maintenance.jobs import Job
from longthread.store.maintenance.retention import (
    Checkpoints,
    Expired,
    Retention,
    RetentionPolicy,
    Staying,
    Surplus,
    expire,
)
from longthread.store.maintenance.space import StoreStatus, reclaim, size_of, status_of
from longthread.store.open import open_store, refuse_same_place
from longthread.store.schema import SCHEMA_VERSION
from longthread.store.transfer.copy import CopyComparison, compare_stores, copy_store
from longthread.store.transfer.threads import Refusal, TransferOutcome

KeepCheckpoints = Annotated[
    str, typer.Option(help="How many of the newest checkpoints stay in each namespace of a thread, or all.")
]
CheckpointsOlderThan = Annotated[str | None, typer.Option(metavar="AGE", help="Only checkpoints older than this go.")]
ThreadsIdle = Annotated[str | None, typer.Option(metavar="AGE", help="Threads go that were not active for so long.")]
KeepExpired = Annotated[bool, typer.Option("--keep-expired", help="Threads that have expired stay.")]
EntriesOlderThan = Annotated[
    str | None, typer.Option(metavar="AGE", help="Entries older than this go, but not those of a thread's window.")
]
RunsOlderThan = Annotated[
    str | None,
    typer.Option(
        "--runs-older-than",
        "--events-older-than",
        metavar="AGE",
        help="Runs that ended longer ago go, with their steps and events.",
    ),
]
WithMemories = Annotated[
    bool, typer.Option("--with-memories", help="What was remembered from threads that go is forgotten with them.")
]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without this, only say what would go.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@dataclass(frozen=True)
class _Outcome:
    """What pruning has done, or would do; sizes are in bytes."""

    found: Pruned
    problems: list[str]
    size_before: int
    size: int


def prune_(
    keep_checkpoints: KeepCheckpoints = "1",
    checkpoints_older_than: CheckpointsOlderThan = None,
    threads_idle: ThreadsIdle = None,
    keep_expired: KeepExpired = False,
    entries_older_than: EntriesOlderThan = None,
    runs_older_than: RunsOlderThan = None,
    with_memories: WithMemories = False,
    apply: Apply = False,
    yes: Yes = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Delete what is no longer needed, and give its space back. It may run while servers do.

    An AGE is a number with s, m, h, d or w, such as 90d.
    """
    settings = Settings.load(database=database)
    now = datetime.now(UTC)
    policy = RetentionPolicy(
        now=None if keep_expired else _text(now),
        idle_before=_before(now, threads_idle, "--threads-idle"),
        entries_before=_before(now, entries_older_than, "--entries-older-than"),
        runs_before=_before(now, runs_older_than, "--runs-older-than"),
        checkpoints=_checkpoints(keep_checkpoints),
        checkpoints_before=_before(now, checkpoints_older_than, "--checkpoints-older-than"),
        window=settings.memory_max_messages_per_thread,
        with_memories=with_memories,
    )
    if apply and not yes and sys.stdin.isatty():
        echo("To go: {}", _describe_pruned(run(_prune(settings, policy, apply=False)).found))
        confirm("Delete it? It cannot be undone.")
    outcome = run(_prune(settings, policy, apply=apply))
    _show(outcome, applied=apply, as_json=as_json)
    leave_damaged("pruned", outcome.found.damaged, quiet=as_json)


async def _prune(settings: Settings, policy: RetentionPolicy, *, apply: bool) -> _Outcome:
    retention = Retention(policy, _LangGraphCheckpoints(), may_be_alive)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(existing(settings))
        if apply:
            await stack.enter_async_context(alone(store, Job("retention"), "pruning"))
        before = await size_of(store)
        with show_progress("pruning" if apply else "looking") as progress:
            found = await prune(store, retention, progress, apply=apply)
            problems = await reclaim(store, progress.say) if apply else []
        return _Outcome(found, problems, before, await size_of(store))


class _LangGraphCheckpoints:
    """Loads their reader when a thread has some: only then is LangGraph needed."""

    async def surplus(self, tx: Transaction, thread_id: str, *, keep: int | None, before: str | None) -> Surplus:
        return await self._reader().surplus(tx, thread_id, keep=keep, before=before)

    async def first_entry(self, tx: Transaction, thread_id: str, staying: Mapping[str, Staying]) -> int | None:
        return await self._reader().first_entry(tx, thread_id, staying)

    def _reader(self) -> Checkpoints:
        from longthread.langgraph.saver.retention import CheckpointKeeper

        return CheckpointKeeper()


def _show(outcome: _Outcome, *, applied: bool, as_json: bool) -> None:
    found, before, size = outcome.found, outcome.size_before, outcome.size
    if as_json:
        about = {"applied": applied, "size_before": before, "size": size, "problems": outcome.problems}
        print_line(asdict(found) | about)
        return
    echo("Deleted: {}" if applied else "Would delete: {}", _describe_pruned(found))
    if found.busy:
        echo("Left alone: {} with a run under way.", count_noun(found.busy, "thread"))
    if applied:
        echo("The store had {} and has {}.", bytes_text(before), bytes_text(size))
    else:
        echo("Nothing was changed. Do it with --apply.")
    for problem in outcome.problems:
        echo_made(problem)


def _before(now: datetime, given: str | None, option: str) -> str | None:
    if given is None:
        return None
    with suppress(OverflowError):
        if (span := age(given)) is not None:
            return _text(now - span)
    raise InvalidInput(reason=f"{option} is {given!r}; allowed is a number with s, m, h, d or w, such as 90d.")


def _checkpoints(given: str) -> int | None:
    if given == "all":
        return None
    if not given.isascii() or not given.isdigit() or int(given) < 1:
        raise InvalidInput(reason=f"--keep-checkpoints is {given!r}; allowed is a whole number from 1 on, or all.")
    return int(given)


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


def _describe_pruned(found: Pruned) -> str:
    if not found.rows:
        return say("nothing.")
    parts = [count_noun(found.threads, "whole thread")] if found.threads else []
    parts += [count_noun(rows, row_of(table)) for table, rows in sorted(found.rows.items()) if table != "threads"]
    return say("{}: {} of {}.", say(", ").join(parts), bytes_text(found.bytes), count_noun(found.touched, "thread"))


def row_of(table: str) -> str:
    """What one row of a table is called."""
    singular = f"{table[:-3]}y" if table.endswith("ies") else table.removesuffix("s")
    return singular.replace("_", " ")


def cleanup(as_json: options.AsJson = False, database: options.Database = None) -> None:
    """Delete the conversations that have expired, and say how many. `longthread gateway` does it by itself.

    `longthread db prune` deletes more, and returns the space.
    """
    found = run(_expire(Settings.load(database=database)))
    if as_json:
        print_line(asdict(found))
    else:
        echo("Deleted {}.", count_noun(found.threads, "expired conversation"))
        if found.busy:
            echo("Left alone: {} with a run under way.", count_noun(found.busy, "conversation"))
    leave_damaged("deleted", found.damaged, quiet=as_json)


async def _expire(settings: Settings) -> Expired:
    async with existing(settings) as store:
        return await expire(store)


db = typer.Typer(
    help="Look at the store, bring it up to date, copy it, back it up, prune it, index it.", no_args_is_help=True
)
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


db.command("backup")(backup)
db.command("restore")(restore)


@db.command()
def index(database: options.Database = None, as_json: options.AsJson = False) -> None:
    """Index every thread for recall and for the gateway, and give its entries vectors of the configured embedder.

    All that happens by itself, thread by thread; after an import, or with a new embedder, this does it at once.
    """
    # Here and not above: numpy and LangChain take time to load, and other commands do not need them.
    from longthread.gateway.stored_calls import rebuild_missing
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
