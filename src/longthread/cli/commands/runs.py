"""`longthread threads runs`, `result` and `chart`: what ran on a conversation, and the results of its queries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from longthread.builtin.chart import charts_of
from longthread.cli import options
from longthread.cli.options import find_thread
from longthread.cli.server_choice import chosen_server
from longthread.cli.terminal import by_user, echo, echo_data, join_by_tabs, print_line
from longthread.cli.whole_store import count_noun, existing, output, run
from longthread.errors import InvalidInput, OptionNotOnServer
from longthread.model.catalog import Kind
from longthread.model.entry import Entry
from longthread.model.run import AgentRun, Approval, Run
from longthread.runs.worker import may_be_alive
from longthread.settings import Settings
from longthread.store import catalog, log, wait_list
from longthread.store import runs as run_store
from longthread.store.driver import Transaction
from longthread.tools.analysis.export import TableFormat, write

if TYPE_CHECKING:
    from longthread.cli.remote.logins import ServerLogin
    from longthread.context.citations import StoredResult
    from longthread.runs.analyst import Analyst

_PARTS: tuple[Kind, ...] = ("skill", "tool", "source", "agent")
_QUESTION = 80
"""Characters of a question in a line."""


def runs(
    thread: Annotated[str, typer.Argument(help="The conversation: its id, the beginning of it, or last.")],
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """The runs of a conversation, the latest first: with the version of the agent that ran."""
    settings = Settings.load(database=database, read_only=read_only)

    async def read() -> list[_Ran]:
        async with existing(settings) as store:
            thread_id = str(await find_thread(store, thread, user=settings.user))
            async with store.reading() as tx:
                parent_id = (await log.find_thread(tx, thread_id, user_id=settings.user)).parent_id
                names: dict[tuple[Kind, str, int], str] = {}
                found = await run_store.list_runs(tx, thread_id, limit=limit)
                return [await _describe_run(tx, run, parent_id, names) for run in found]

    for each in asyncio.run(read()):
        _print_run(each, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Ran:
    """A run, how it stands, the agent that ran, where it was asked for by another, the runs that it has asked for, and
    its calls that a person was asked about."""

    run: Run
    status: str
    agent: Mapping[str, Any] | None
    answers: Mapping[str, str | None] | None
    asked: Sequence[_Ran] = ()
    approvals: Sequence[Approval] = ()


async def _describe_run(
    tx: Transaction, run: Run, parent_id: str | None, names: dict[tuple[Kind, str, int], str], *, deep: bool = True
) -> _Ran:
    agent = await _describe_agent(tx, run.agent, names) if run.agent else None
    by = run.answers
    answers = {"thread": parent_id, "run": by.run_id, "call": by.call_id} if by is not None else None
    below = await run_store.answers(tx, run.thread_id, run.id) if deep else []
    asked = [await _describe_run(tx, each, run.thread_id, names, deep=False) for each in below]
    calls = await wait_list.of_run(tx, run.thread_id, run.id) if deep else ()
    return _Ran(run, await run_store.current_status(tx, run, alive=may_be_alive), agent, answers, asked, calls)


def _print_run(ran: _Ran, *, as_json: bool) -> None:
    run, agent = ran.run, ran.agent
    if as_json:
        print_line(
            {
                "run": run.id,
                "status": ran.status,
                "started_at": run.started_at.isoformat(),
                "ended_at": run.ended_at.isoformat() if run.ended_at else None,
                "question": run.question,
                "model": run.model,
                "source": run.source,
                "agent": agent,
                **({"approvals": [call.to_json() for call in ran.approvals]} if ran.approvals else {}),
                "answers": ran.answers,
                "asked": [_describe_asked(each) for each in ran.asked],
            }
        )
        return
    echo_data(_format_line(ran))
    for call in ran.approvals:
        echo_data(join_by_tabs(("", f"{call.at or call.asked_at:%Y-%m-%d %H:%M}", *_describe_decision(call))))
    for each in ran.asked:
        echo_data(f"↳ {_format_line(each)}\t{each.run.thread_id}")


def _describe_asked(ran: _Ran) -> dict[str, Any]:
    run = ran.run
    name = ran.agent["name"] if ran.agent else None
    call = run.answers.call_id if run.answers else None
    return {"thread": run.thread_id, "run": run.id, "call": call, "agent": name, "status": ran.status}


def _format_line(ran: _Ran) -> str:
    run, agent = ran.run, f"{ran.agent['name']} v{ran.agent['version']}" if ran.agent else ""
    question = " ".join(run.question.split())[:_QUESTION]
    return "\t".join((f"{run.started_at:%Y-%m-%d %H:%M}", ran.status, agent, run.model, question))


def _describe_decision(call: Approval) -> tuple[str, ...]:
    """What became of a call that a person was asked about."""
    said = f"{call.tool} {json.dumps(dict(call.made_with), ensure_ascii=False)}"
    if call.decision is None:
        return ("waiting", said, call.call_id)
    by = by_user(call.by)
    # A message never stands where the user's name would: it can say anything.
    return (call.decision, said, *([by, call.message] if call.message else [by] if by else []))


async def _describe_agent(tx: Transaction, ran: AgentRun, names: dict[tuple[Kind, str, int], str]) -> dict[str, Any]:
    """What ran, by the names that it had then."""
    parts = {
        f"{kind}s": {
            await _find_name(tx, kind, id_, number, names): number for id_, number in ran.parts.get(kind, {}).items()
        }
        for kind in _PARTS
    }
    opened = [
        await _find_name(tx, "skill", id_, ran.parts.get("skill", {}).get(id_, 0), names) for id_ in ran.opened_skills
    ]
    name = await _find_name(tx, "agent", ran.id, ran.version, names)
    return {
        "id": ran.id,
        "name": name,
        "version": ran.version,
        **{kind: found for kind, found in parts.items() if found},
        **({"opened": opened} if opened else {}),
    }


async def _find_name(
    tx: Transaction, kind: Kind, id_: str, number: int, names: dict[tuple[Kind, str, int], str]
) -> str:
    key = (kind, id_, number)
    if key not in names:
        names[key] = await catalog.name_then(tx, kind, id_, number)
    return names[key]


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
    if (login := chosen_server()) is not None:
        for option, is_given in (("--stored", stored), ("--source", source is not None)):
            if is_given:
                raise OptionNotOnServer(option=option)
        _write_of_server(login, name, label, to, chosen, force=force)
        return
    settings = Settings.load(database=database, read_only=read_only, sql_timeout=seconds)

    # Here and not above: LangChain takes time to load, and other commands do not need it.
    from longthread.context.citations import find_result
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


def _write_of_server(
    login: ServerLogin, name: str, label: str, to: Path | None, chosen: TableFormat, *, force: bool
) -> None:
    """Write a whole result that a server has."""
    from longthread.cli.remote.client import ServerClient, at, work_on_server
    from longthread.cli.remote.thread_calls import find_step

    async def work(client: ServerClient) -> None:
        thread_id = str(await client.find_thread(name))
        path = at(thread_id, "steps", await find_step(client, thread_id, label), "result", "file")
        with output(to, Settings.load().database, force=force) as file:
            await client.download(path, file, format=chosen.value)

    work_on_server(login, work)
    if to is not None:
        echo("Written: {}", to, err=True)


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
