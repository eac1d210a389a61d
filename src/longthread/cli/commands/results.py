"""`longthread threads result` and `chart`: a query's whole result as a file, and a chart with its rows."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from longthread.builtin.chart import charts_of
from longthread.cli import options
from longthread.cli.find_thread import find_thread
from longthread.cli.output_file import output
from longthread.cli.progress import count_noun
from longthread.cli.screen import echo
from longthread.cli.whole_store import existing, run
from longthread.errors import InvalidInput
from longthread.model.entry import Entry
from longthread.settings import Settings
from longthread.store import log
from longthread.tools.analysis.export.table import TableFormat, write

if TYPE_CHECKING:
    from longthread.builtin.query_results import StoredResult
    from longthread.runs.analyst import Analyst


def result(
    name: Annotated[str, typer.Argument(metavar="THREAD", help="The conversation: its id, its beginning, or last.")],
    label: Annotated[str, typer.Argument(metavar="QUERY", help="The result's label, such as q3.")],
    to: Annotated[Path | None, typer.Option("--to", "-o", help="A file; standard output by default.")] = None,
    format_: Annotated[
        TableFormat | None, typer.Option("--format", "-f", help="By default as FILE's name says; else csv.")
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="The rows that the conversation holds; the database is not asked.")
    ] = False,
    source: options.SourceOption = None,
    seconds: Annotated[float, typer.Option("--seconds", min=1, max=86_400, help="Time of the query.")] = 600.0,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE when it is there.")] = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """Write a query's whole result to a file: CSV, Parquet or XLSX. It is asked again, by the rules that hold now."""
    chosen = format_ or _format_of(to)
    settings = Settings.load(database=database, read_only=read_only, sql_timeout=seconds)

    # Here and not above: LangChain takes time to load, and other commands do not need it.
    from longthread.builtin.query_results import find_result
    from longthread.runs.analyst import Analyst

    async def work() -> int:
        async with Analyst.open(settings, creates=False) as analyst:
            thread_id = str(await find_thread(analyst.store, name, user=settings.user))
            async with analyst.store.reading() as tx:
                thread = await log.find_thread(tx, thread_id, user_id=settings.user)
                entries = await log.branch(tx, thread_id, thread.tip, limit=max(1, thread.entry_count))
            found = find_result(entries, label)
            with output(to, settings.database, force=force) as file:
                if stored:
                    return write(chosen, found.columns, found.rows, file, marked=True)
                return await _query_result(analyst, thread_id, source, found, chosen, file)

    count = run(work())
    if to is not None:
        echo("{} written to {}.", count_noun(count, "row"), to, err=True)


async def _query_result(
    analyst: Analyst, thread_id: str, spec: str | None, found: StoredResult, chosen: TableFormat, file: BinaryIO
) -> int:
    async with await analyst.sources.open(spec, thread_id, user_id=analyst.settings.user) as source:
        schema = await source.schema()
        _, sql = await asyncio.to_thread(source.prepare, found.sql, schema)

        def work(connection: Any) -> int:
            rows = connection.query(sql)
            try:
                return write(chosen, rows.columns, rows, file, binary=rows.binary, marked=True)
            finally:
                rows.close()

        return await source.work(work)


def _format_of(to: Path | None) -> TableFormat:
    if to is None:
        return TableFormat.CSV
    ending = to.suffix.lower().lstrip(".")
    if ending not in set(TableFormat):
        raise InvalidInput(reason=f"{to.name} says no format. End it in .csv, .parquet or .xlsx, or give --format.")
    return TableFormat(ending)


def chart(
    name: Annotated[str, typer.Argument(metavar="THREAD", help="The conversation: its id, its beginning, or last.")],
    number: Annotated[int | None, typer.Argument(min=1, help="Which of its charts; by default the last.")] = None,
    to: Annotated[Path | None, typer.Option("--to", "-o", help="A file; standard output by default.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE when it is there.")] = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """Write a chart of a conversation as Vega-Lite JSON, with the rows that the conversation holds."""
    settings = Settings.load(database=database, read_only=read_only)

    async def entries() -> list[Entry]:
        async with existing(settings) as store:
            thread_id = str(await find_thread(store, name, user=settings.user))
            async with store.reading() as tx:
                thread = await log.find_thread(tx, thread_id, user_id=settings.user)
                return await log.branch(tx, thread_id, thread.tip, limit=max(1, thread.entry_count))

    charts = charts_of(run(entries()))
    if not charts:
        raise InvalidInput(reason="The conversation has no chart.")
    if not 0 < (number or len(charts)) <= len(charts):
        raise InvalidInput(reason=f"There is no such chart: the conversation has {len(charts)}, counted from 1.")
    chosen = charts[(number or len(charts)) - 1]
    with output(to, settings.database, force=force) as file:
        file.write(json.dumps(chosen, ensure_ascii=False, indent=2).encode() + b"\n")
