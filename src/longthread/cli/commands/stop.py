"""`longthread stop`: the run of a conversation that waits for a person is called off."""

from __future__ import annotations

import asyncio

from longthread.cli import options
from longthread.cli.commands.approve import ThreadArgument
from longthread.cli.find_thread import find_thread
from longthread.cli.terminal import Terminal
from longthread.settings import Settings
from longthread.store import runs


def stop(thread: ThreadArgument, as_json: options.AsJson = False, database: options.Database = None) -> None:
    """Stop a run that waits for approval: its calls are not made, and what was done is kept."""
    settings = Settings.load(database=database)
    terminal = Terminal(as_json=as_json)

    async def work() -> None:
        # Here and not above: LangChain takes seconds to load, and most commands need none of it.
        from longthread.runs.analyst import Analyst

        async with Analyst.open(settings, creates=False) as analyst:
            thread_id = str(await find_thread(analyst.store, thread, user=settings.user))
            await analyst.runs.stop(thread_id, user_id=settings.user)
            async with analyst.store.reading() as tx:
                run = await runs.last_run(tx, thread_id)
                if run is None:
                    return  # deleted meanwhile
                last = await runs.last_event(tx, thread_id, run.id)
                for event in await runs.events_after(tx, thread_id, run.id, last - 1):
                    terminal.show(event)

    asyncio.run(work())
