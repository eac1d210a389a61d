"""`longthread chat`: a conversation in the terminal."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from rich.markup import escape

from longthread.cli import options
from longthread.cli.commands.approve import decided_here, see_through
from longthread.cli.find_thread import find_thread
from longthread.cli.language import say, translate
from longthread.cli.show_run import finish_summary
from longthread.cli.terminal import Terminal
from longthread.errors import LongthreadError, StoreReadOnly, ThreadNotFound
from longthread.model.ids import new_id
from longthread.model.language import asks_to_continue
from longthread.model.run import Protocol
from longthread.settings import Settings

if TYPE_CHECKING:
    from longthread.runs.analyst import Analyst
    from longthread.runs.handle import RunHandle

_HELP = "Ask away. Ctrl-C stops an answer; /quit, /exit or Ctrl-D leaves. The conversation is kept."


def chat(
    source: options.SourceOption = None,
    thread: options.ThreadOption = None,
    model: options.Model = None,
    max_steps: options.MaxSteps = None,
    protocol: options.ProtocolOption = "auto",
    agent: options.AgentOption = None,
    database: options.Database = None,
) -> None:
    """Hold a conversation with a database, or with another agent."""
    # Here and not above: LangChain takes seconds to load, and most commands need none of it.
    from longthread.runs.analyst import Analyst

    settings = Settings.load(database=database)
    checked = options.read_protocol(protocol)
    terminal = Terminal()
    # One loop for the whole conversation, left between questions: so Ctrl-C at the prompt just leaves.
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            analyst = runner.run(stack.enter_async_context(Analyst.open(settings)))
            new = {"may_be_new": source is not None or agent is not None, "else_new": settings.source is not None}
            thread_id = runner.run(find_thread(analyst.store, thread, user=settings.user, **new))
            asking = ChatOptions(
                thread_id=thread_id or new_id(),
                source=source,
                model=model,
                protocol=checked,
                max_steps=max_steps,
                agent=agent,
            )
            terminal.err.print(
                f"[dim]{escape(say('thread {}', asking.thread_id))}\n{say(_HELP)}[/dim]", highlight=False
            )
            while (question := _read_line()) is not None:
                if question:
                    asking = runner.run(_answer(analyst, terminal, question, asking))
            runner.run(finish_summary(analyst, terminal))
        finally:
            runner.run(stack.aclose())


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How the next question is asked. Once the thread has a source, none need be named."""

    thread_id: str
    source: str | None
    model: str | None
    protocol: Protocol
    max_steps: int | None
    agent: str | None


async def _answer(analyst: Analyst, terminal: Terminal, question: str, asking: ChatOptions) -> ChatOptions:
    handle: RunHandle | None
    try:
        if terminal.asks and asks_to_continue(question) and await _waits(analyst, asking.thread_id):
            handle = await decided_here(analyst, asking.thread_id, terminal)
        else:
            handle = await analyst.ask(question, user_id=analyst.settings.user, **asdict(asking))
        if handle is None:  # it is decided later still
            return asking
        await see_through(analyst, handle, terminal)
    except StoreReadOnly:
        raise  # no other question can be answered either
    except LongthreadError as error:
        terminal.err.print(f"[red]{escape(translate(str(error)))}[/red]", highlight=False)
        return asking
    return replace(asking, source=None)


async def _waits(analyst: Analyst, thread_id: str) -> bool:
    """Whether a call waits that can be asked about again."""
    with suppress(ThreadNotFound):  # nothing has been asked yet
        return bool(await analyst.approvals.pending(thread_id, user_id=analyst.settings.user))
    return False


def _read_line() -> str | None:
    try:
        line = input("\n? ").strip()
    except (EOFError, KeyboardInterrupt):
        return None
    return None if line in {"/quit", "/exit"} else line
