"""`longthread db prune` and `longthread gateway cleanup`: retention, and expired conversations."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer

from longthread.cli import options
from longthread.cli.language import say
from longthread.cli.options import age
from longthread.cli.progress import bytes_text, count_noun, leave_damaged, show_progress
from longthread.cli.screen import confirm, echo, echo_made
from longthread.cli.terminal import print_line
from longthread.cli.whole_store import alone, existing, run
from longthread.errors import InvalidInput
from longthread.runs.worker import may_be_alive
from longthread.settings import Settings
from longthread.store.driver import Transaction
from longthread.store.maintenance.jobs import Job
from longthread.store.maintenance.prune import Pruned, prune
from longthread.store.maintenance.retention import (
    Checkpoints,
    Expired,
    Retention,
    RetentionPolicy,
    Staying,
    Surplus,
    expire,
)
from longthread.store.maintenance.space import reclaim
from longthread.store.maintenance.status import size_of

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
