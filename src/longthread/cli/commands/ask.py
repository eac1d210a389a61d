"""`longthread ask` and `longthread resume`: one run in the terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from longthread.cli import options
from longthread.cli.commands.approve import decided_here, see_through
from longthread.cli.find_thread import find_thread
from longthread.cli.language import say
from longthread.cli.show_run import finish_summary
from longthread.cli.terminal import Terminal
from longthread.errors import InvalidInput
from longthread.settings import Settings

if TYPE_CHECKING:
    from longthread.runs.analyst import Analyst
    from longthread.runs.handle import RunHandle

_REPLACED = "\ufffd"
_MOST_WRONG = 0.1
"""The part of a text that may be bytes that are no UTF-8."""


def ask(
    question: Annotated[str, typer.Argument(help="The question; - reads it from standard input.")],
    source: options.SourceOption = None,
    thread: options.ThreadOption = None,
    model: options.Model = None,
    max_steps: options.MaxSteps = None,
    protocol: options.ProtocolOption = "auto",
    agent: options.AgentOption = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Ask a question of a database, or of another agent; the conversation is kept."""
    settings = Settings.load(database=database)
    text = _read_input() if question == "-" else question
    new = {"may_be_new": source is not None or agent is not None, "else_new": settings.source is not None}

    async def start(analyst: Analyst) -> RunHandle:
        return await analyst.ask(
            text,
            thread_id=await find_thread(analyst.store, thread, user=settings.user, **new),
            source=source,
            model=model,
            protocol=options.read_protocol(protocol),
            max_steps=max_steps,
            agent=agent,
            user_id=settings.user,
        )

    begins = any(new.values()) or thread is None
    raise typer.Exit(asyncio.run(_run(settings, start, Terminal(as_json=as_json), creates=begins)))


def resume(
    thread: Annotated[str, typer.Argument(help="The conversation: its id, the beginning of it, or last.")],
    source: options.SourceOption = None,
    model: options.Model = None,
    max_steps: options.MaxSteps = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Go on with a run that was paused, stopped, failed or killed. Finished tool calls are not repeated."""
    settings, terminal = Settings.load(database=database), Terminal(as_json=as_json)

    async def start(analyst: Analyst) -> RunHandle:
        thread_id = await find_thread(analyst.store, thread, user=settings.user)
        assert thread_id is not None
        decided = await decided_here(analyst, thread_id, terminal)
        return decided or await analyst.runs.resume(
            thread_id, user_id=settings.user, source=source, model=model, max_steps=max_steps
        )

    raise typer.Exit(asyncio.run(_run(settings, start, terminal, creates=False)))


async def _run(
    settings: Settings, start: Callable[[Analyst], Awaitable[RunHandle]], terminal: Terminal, *, creates: bool
) -> int:
    # Here and not above: LangChain takes seconds to load, and most commands need none of it.
    from longthread.runs.analyst import Analyst

    async with Analyst.open(settings, creates=creates) as analyst:
        handle = await start(analyst)
        if not terminal.as_json:
            begun = say("thread {}  model {}", handle.thread_id, handle.run.model)
            terminal.err.print(f"[dim]{escape(begun)}[/dim]", highlight=False)
        code = await see_through(analyst, handle, terminal)
        await finish_summary(analyst, terminal)
        return code


def _read_input() -> str:
    """Standard input as text. A few bytes that are no UTF-8 are replaced; many are another encoding, or no text.

    Raises:
        InvalidInput: it is no text in UTF-8.
    """
    data = sys.stdin.buffer.read()
    text = data.decode("utf-8", "replace")
    wrong = text.count(_REPLACED) - data.count(_REPLACED.encode())
    if b"\0" in data or wrong > len(text) * _MOST_WRONG:
        raise InvalidInput(reason="Standard input is not text in UTF-8. Convert it, for instance with iconv -t utf-8.")
    return text
