"""`longthread threads chart`: a chart of a conversation, as a Vega-Lite specification with its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from longthread.builtin.chart import charts_of
from longthread.cli import options
from longthread.cli.find_thread import find_thread
from longthread.cli.output_file import output
from longthread.cli.whole_store import existing, run
from longthread.errors import InvalidInput
from longthread.model.entry import Entry
from longthread.settings import Settings
from longthread.store import log


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
