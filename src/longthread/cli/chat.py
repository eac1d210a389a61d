"""`longthread chat`: a conversation in the terminal."""

from __future__ import annotations

import asyncio

import typer

from longthread.agent.analyst import Analyst
from longthread.cli import options
from longthread.cli.ask import absolute, checked_protocol, find_thread, show_run
from longthread.cli.terminal import Terminal
from longthread.errors import LongthreadError
from longthread.model.ids import new_id
from longthread.settings import Settings

_HELP = "Ask away. Ctrl-C stops an answer; /quit, /exit or Ctrl-D leaves. The conversation is kept."


def chat(
    source: options.Source = None,
    thread: options.Thread = None,
    model: options.Model = None,
    max_steps: options.MaxSteps = None,
    protocol: options.Protocol = "auto",
    database: options.Database = None,
) -> None:
    """Hold a conversation with a database."""
    settings = Settings.load(database=database)
    checked = checked_protocol(protocol)

    async def converse() -> None:
        terminal = Terminal()
        async with Analyst.open(settings) as analyst:
            thread_id = await find_thread(analyst, thread, may_be_new=source is not None)
            current, asked = thread_id or new_id(), absolute(source) or (None if thread_id else settings.source)
            terminal.err.print(f"[dim]thread {current}\n{_HELP}[/dim]", highlight=False)
            while (question := await asyncio.to_thread(_read_line)) is not None:
                if not question:
                    continue
                try:
                    handle = await analyst.ask(
                        question, thread_id=current, source=asked, model=model, protocol=checked, max_steps=max_steps
                    )
                    await show_run(handle, terminal)
                    asked = None
                except LongthreadError as error:
                    terminal.err.print(f"[red]{error}[/red]", highlight=False, markup=True)

    asyncio.run(converse())
    raise typer.Exit


def _read_line() -> str | None:
    try:
        line = input("\n? ").strip()
    except (EOFError, KeyboardInterrupt):
        return None
    return None if line in {"/quit", "/exit"} else line
