"""Runs wherever they are: in rows of their own, or in bundles. Who reads runs need not know which."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from longthread.store.bundled import Bundle, Bundled, bundle_of, runs_in
from longthread.store.driver import Row, Transaction, one
from longthread.store.tables import Table
from longthread.store.transfer.rows import write_rows


async def find_row(tx: Transaction, thread_id: str, run_id: str, *, texts: bool = True) -> Row | None:
    """A run's row, with what its entries say where these `texts` are wanted."""
    row = await one(tx, "select_run", thread_id=thread_id, id=run_id)
    if row is not None:
        return row
    run = await _bundled(tx, thread_id, run_id)
    if run is None:
        return None
    found = run.read(thread_id)
    seqs = {name: found[name] for name in ("question_seq", "entry_seq")}
    said = await tx.fetch("select_said_by", thread_id=thread_id, **seqs) if texts else []
    return _with(found, {row["seq"]: row for row in said})


async def last_event(tx: Transaction, thread_id: str, run_id: str) -> int:
    """The number of the last event of a bundled run; 0 where it is not in a bundle."""
    run = await _bundled(tx, thread_id, run_id)
    return 0 if run is None else int(run.columns["last_event"])


async def newest_rows(tx: Transaction, thread_id: str, limit: int) -> list[Row]:
    """The rows of the newest runs, the newest first, with what their entries say."""
    found = {row["id"]: row for row in await tx.fetch("select_runs", thread_id=thread_id, limit=limit)}
    above = min(found, default="") if len(found) == limit else ""
    older: dict[str, dict[str, Any]] = {}
    before: str | None = None
    while len(older) < limit:
        bundle = await one(tx, "select_bundle_before", thread_id=thread_id, before=before, above=above)
        if bundle is None:
            break
        # What was bundled after the first look is there twice.
        older |= {run.id: run.read(thread_id) for run in runs_in(bundle) if run.id not in found}
        before = bundle["first_id"]
    wanted = sorted([*found, *older], reverse=True)[:limit]
    among_them = await _with_texts(tx, thread_id, [older[name] for name in wanted if name in older])
    found |= {row["id"]: row for row in among_them}
    return [found[name] for name in wanted]


async def rows_of_steps(tx: Transaction, thread_id: str, first: int, stop: int) -> list[Row]:
    """The rows of the ended runs that made steps with `first` <= index < `stop`."""
    found = [*await tx.fetch("select_runs_of_steps", thread_id=thread_id, first=first, stop=stop)]
    there = {row["id"] for row in found}
    for bundle in await tx.fetch("select_bundles_of_steps", thread_id=thread_id, first=first, stop=stop):
        for run in runs_in(bundle):
            own = run.columns
            if run.id not in there and own["first_step"] < stop and own["stop_step"] > first:
                found.append(_with(run.read(thread_id), {}))
    return found


async def whole_rows(tx: Transaction, thread_id: str, rows: AsyncIterator[Row]) -> AsyncIterator[Row]:
    """The rows of all runs of a thread, in the order of their ids, as if none were bundled; `rows` are the others."""
    waiting = await anext(rows, None)
    async for run in _all_bundled(tx, thread_id):
        while waiting is not None and waiting["id"] < run.id:
            yield waiting
            waiting = await anext(rows, None)
        yield run.row(thread_id)
    while waiting is not None:
        yield waiting
        waiting = await anext(rows, None)


async def count(tx: Transaction, thread_id: str) -> int:
    """How many runs of a thread are bundled."""
    [measured] = await tx.fetch("measure_bundles", thread_id=thread_id, first_run=None)
    return int(measured["runs"])


async def count_all(tx: Transaction) -> int:
    """How many runs are bundled, of all threads."""
    [counted] = await tx.fetch("count_bundled")
    return int(counted["runs"])


async def insert(tx: Transaction, thread_id: str, bundles: Sequence[Bundle]) -> None:
    """Insert bundles of runs, which must be in no other and have no rows when this is committed."""
    await tx.run_all("insert_bundle", [{"thread_id": thread_id, **asdict(bundle)} for bundle in bundles])


async def take_out(tx: Transaction, table: Table, thread_id: str, run_id: str) -> bool:
    """See to it that a run has a row of its own in `table`, so that others can refer to it; False where there is no
    such run. For who has locked the thread."""
    if await one(tx, "select_run", thread_id=thread_id, id=run_id):
        return True
    bundle = await one(tx, "select_bundle_of", thread_id=thread_id, id=run_id)
    there = runs_in(bundle) if bundle is not None else ()
    rest = [run for run in there if run.id != run_id]
    if bundle is None or len(rest) == len(there):
        return False
    await tx.run("delete_bundle", thread_id=thread_id, first_id=bundle["first_id"])
    await insert(tx, thread_id, [bundle_of(rest)] if rest else [])
    await write_rows(tx, table, [run.row(thread_id) for run in there if run.id == run_id])
    return True


@dataclass(frozen=True, slots=True)
class Behind:
    """What goes of the bundles when the runs before `first_run` go (None: all): so many runs, and about so many bytes.
    `prompts` are those that the rest of a bundle names of which only a part goes."""

    first_run: str | None
    runs: int
    bytes: int
    prompts: str = ""


async def behind(tx: Transaction, thread_id: str, first_run: str | None) -> Behind:
    """What would go of the bundles."""
    [measured] = await tx.fetch("measure_bundles", thread_id=thread_id, first_run=first_run)
    whole = Behind(first_run, int(measured["runs"]), int(measured["size"]))
    straddling = await _straddling(tx, thread_id, first_run)
    if straddling is None or first_run is None:
        return whole
    runs = runs_in(straddling)
    rest = bundle_of([run for run in runs if run.id >= first_run])
    gone = len(runs) - rest.runs
    size = len(straddling["body"]) * gone // len(runs)
    return Behind(first_run, whole.runs + gone, whole.bytes + size, rest.prompts or "")


async def delete_behind(tx: Transaction, thread_id: str, first_run: str) -> None:
    """Delete the bundled runs before one. For who has locked the thread."""
    await tx.run("delete_bundles_before", thread_id=thread_id, first_run=first_run)
    straddling = await _straddling(tx, thread_id, first_run)
    if straddling is not None:
        await tx.run("delete_bundle", thread_id=thread_id, first_id=straddling["first_id"])
        await insert(tx, thread_id, [bundle_of([run for run in runs_in(straddling) if run.id >= first_run])])


async def first_kept(
    tx: Transaction, thread_id: str, kept: Row, goes: Callable[[Row], bool], *, ended_before: str, few: bool = False
) -> Row:
    """The first run that does not go: `kept`, which is the first such one that has a row, or one in a bundle.

    With `few`, only the first bundle is looked at: for who deletes no more than that, and asks again.
    """
    after = ""
    while bundle := await one(tx, "select_bundle_after", thread_id=thread_id, after=after, before=kept["id"]):
        if few and after:
            break
        after = bundle["first_id"]
        if bundle["ended_at"] >= ended_before:
            staying = (run.columns for run in runs_in(bundle) if not goes(run.columns))
            first = next(staying, None)
            if first is not None:
                return min(first, kept, key=lambda row: str(row["id"]))
    return kept


async def first_before(tx: Transaction, thread_id: str, run_id: str) -> Row | None:
    """The first bundle, if it has a run before this one."""
    return await one(tx, "select_bundle_after", thread_id=thread_id, after="", before=run_id)


async def run_behind(tx: Transaction, thread_id: str, bundle: Row) -> Row:
    """The id and the first step of the run behind a bundle. There is one: a thread's last run is in none."""
    found = [
        await one(tx, "select_next_run", thread_id=thread_id, after=bundle["last_id"]),
        await one(tx, "select_bundle_after", thread_id=thread_id, after=bundle["first_id"], before=None),
    ]
    places = [{"id": row.get("id") or row["first_id"], "first_step": row["first_step"]} for row in found if row]
    return min(places, key=lambda place: str(place["id"]))


async def _bundled(tx: Transaction, thread_id: str, run_id: str) -> Bundled | None:
    bundle = await one(tx, "select_bundle_of", thread_id=thread_id, id=run_id)
    if bundle is None or bundle["last_id"] < run_id:
        return None
    return next((run for run in runs_in(bundle) if run.id == run_id), None)


async def _all_bundled(tx: Transaction, thread_id: str) -> AsyncIterator[Bundled]:
    after = ""
    while bundle := await one(tx, "select_bundle_after", thread_id=thread_id, after=after, before=None):
        for run in runs_in(bundle):
            yield run
        after = bundle["first_id"]


async def _straddling(tx: Transaction, thread_id: str, first_run: str | None) -> Row | None:
    """The bundle with runs before one, and with that or others behind."""
    if first_run is None:
        return None
    bundle = await one(tx, "select_bundle_before", thread_id=thread_id, before=first_run, above="")
    return bundle if bundle is not None and bundle["last_id"] >= first_run else None


async def _with_texts(tx: Transaction, thread_id: str, rows: Sequence[dict[str, Any]]) -> list[Row]:
    """Rows from bundles, with what their entries say."""
    seqs = sorted({row[name] for row in rows for name in ("question_seq", "entry_seq") if row[name] is not None})
    said = await tx.fetch("select_said_in", thread_id=thread_id, seqs=json.dumps(seqs)) if seqs else []
    texts = {row["seq"]: row for row in said}
    return [_with(row, texts) for row in rows]


def _with(run: Row, texts: Mapping[int, Row]) -> Row:
    """A run's row with what its entries say, of those whose `texts` are given: the question, and what it ended with."""
    asked, said = texts.get(run["question_seq"]), texts.get(run["entry_seq"])
    of_said = {"said": said and said["text"], "said_id": said and said["id"]}
    return {**run, "asked": asked and asked["text"], **of_said}
