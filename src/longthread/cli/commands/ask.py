"""Runs in the terminal: `longthread ask`, `resume`, `chat`, `approve`, `reject` and `stop`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.markup import escape

from longthread.cli import options
from longthread.cli.language import say, translate
from longthread.cli.run_host import AskOptions, RunHost, open_run_host
from longthread.cli.terminal import PAUSED, ShownRun, Terminal, print_line, show_run
from longthread.errors import InvalidInput, LongthreadError, NotPending, StoreReadOnly, ThreadNotFound
from longthread.model.ids import new_id
from longthread.model.language import asks_to_continue
from longthread.model.run import Decision
from longthread.settings import Settings
from longthread.tools.arguments import Arguments

ThreadArgument = Annotated[str, typer.Argument(help="The conversation: its id, the beginning of it, or last.")]
CallOption = Annotated[
    str | None, typer.Option("--call", help="One of the calls that wait: its id, or the beginning of it.")
]

_YES, _NO, _EDIT = {"y", "yes", "是", "好"}, {"n", "no", "否", "不"}, {"e", "edit", "改", "编辑"}


def approve(
    thread: ThreadArgument,
    call: CallOption = None,
    args: Annotated[str | None, typer.Option("--args", help="Make the call with these arguments, as JSON.")] = None,
    source: options.SourceOption = None,
    model: options.Model = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Let the calls be made that wait for approval, or one of them, and go on with the run."""
    decision = Decision() if args is None else Decision("edit", arguments_of(args))
    _decide(thread, call, decision, Terminal(as_json=as_json), source=source, model=model, database=database)


def reject(
    thread: ThreadArgument,
    call: CallOption = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; the model is told.")] = None,
    source: options.SourceOption = None,
    model: options.Model = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Let the calls not be made that wait for approval, or one of them, and go on with the run."""
    decision = Decision("reject", message=reason)
    _decide(thread, call, decision, Terminal(as_json=as_json), source=source, model=model, database=database)


def _decide(
    thread: str,
    call: str | None,
    decision: Decision,
    terminal: Terminal,
    *,
    source: str | None,
    model: str | None,
    database: str | None,
) -> None:
    settings = Settings.load(database=database)

    async def work() -> int:
        async with open_run_host(settings, creates=False) as host:
            thread_id = await host.find_thread(thread)
            pending = await host.list_pending(thread_id)
            chosen = _choose_calls(pending, thread_id, call, await host.say_why_none_waits(thread_id))
            if decision.type == "edit" and len(chosen) > 1:
                raise InvalidInput(reason="Several calls wait. Say with --call which one has these arguments.")
            decisions = dict.fromkeys(chosen, decision)
            handle = await host.decide(thread_id, decisions, source=source, model=model)
            if handle is not None:
                code = await see_through(host, handle, terminal)
                await host.finish(terminal)
                return code
            left = [dict(each) for each in await host.list_pending(thread_id)]
            if terminal.as_json:
                print_line({"type": "waiting", "thread_id": thread_id, "calls": left})
            else:
                terminal.show_waiting(thread_id, left)
            return PAUSED

    raise typer.Exit(asyncio.run(work()))


def _choose_calls(waiting: Sequence[Mapping[str, Any]], thread_id: str, given: str | None, hint: str) -> list[str]:
    """The ids of the calls that are meant. Raises NotPending, and InvalidInput where several begin so."""
    ids = [str(each["id"]) for each in waiting]
    exact = [each for each in ids if each == given]
    found = exact or [each for each in ids if each.startswith(given or "")]
    if not found:
        raise NotPending(thread=thread_id, call=given or "", hint=hint)
    if given and len(found) > 1:
        raise InvalidInput(reason=f"Several calls begin with {given}. Give more of the id.")
    return found


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call, from what was typed. Raises InvalidInput."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInput(reason=f"The arguments are no JSON: {error}.") from error
    if not isinstance(found, dict):
        raise InvalidInput(reason='The arguments are no JSON object, such as {"to": "ada"}.')
    return found


async def see_through(host: RunHost, handle: ShownRun, terminal: Terminal) -> int:
    """Show a run to its end, and ask the user at the terminal about the calls that wait; return the exit code."""
    while True:
        code = await show_run(handle, terminal)
        went_on = await decided_here(host, handle.thread_id, terminal) if code == PAUSED else None
        if went_on is None:
            if not terminal.as_json:
                terminal.show_waiting_below(await host.list_waiting_below(handle.thread_id))
            return code
        handle = went_on


async def decided_here(host: RunHost, thread_id: str, terminal: Terminal) -> ShownRun | None:
    """Ask the user at the terminal about the calls that wait, and go on. Return None where it may ask no user, or the
    user does not decide."""
    if not terminal.asks:
        return None
    decisions: dict[str, Decision] = {}
    for call in await host.list_pending(thread_id):
        terminal.show_call(call)
        decision = ask_decision(call["tool"], call["parameters"], terminal)
        if decision is None:
            return None
        decisions[call["id"]] = decision
    return await host.decide(thread_id, decisions) if decisions else None


def ask_decision(tool: str, parameters: Mapping[str, Any], terminal: Terminal) -> Decision | None:
    """What a person decides about a call that they were shown; None: not now."""
    while True:
        answer = _read("Make this call? [y]es, [n]o, [e]dit, or Ctrl-D to decide later: ")
        if answer is None:
            return None
        if answer.lower() in _YES:
            return Decision()
        if answer.lower() in _NO:
            return Decision("reject", message=_read("Why not? The model is told (may be empty): ") or None)
        if answer.lower() in _EDIT and (text := _read("Arguments as JSON: ")):
            try:
                return Decision("edit", Arguments(parameters, tool=tool).validate(arguments_of(text)))
            except LongthreadError as error:
                terminal.err.print(translate(str(error)), style="red", markup=False, highlight=False)


def _read(prompt: str) -> str | None:
    sys.stderr.write(say(prompt))
    sys.stderr.flush()
    with _interrupted_at_once():
        try:
            return input().strip()
        except (EOFError, KeyboardInterrupt):
            sys.stderr.write("\n")
            return None


@contextmanager
def _interrupted_at_once() -> Iterator[None]:
    """Ctrl-C ends the reading of a line: asyncio would only note it, and wait for the line."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    how = AskOptions(
        source=source, model=model, protocol=options.read_protocol(protocol), max_steps=max_steps, agent=agent
    )
    may_be_new = source is not None or agent is not None

    async def start(host: RunHost) -> ShownRun:
        thread_id = await host.find_thread_to_ask(thread, may_be_new=may_be_new)
        return await host.ask(text, replace(how, thread_id=thread_id))

    begins = may_be_new or settings.source is not None or thread is None
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

    async def start(host: RunHost) -> ShownRun:
        thread_id = await host.find_thread(thread)
        decided = await decided_here(host, thread_id, terminal)
        return decided or await host.resume(thread_id, AskOptions(source=source, model=model, max_steps=max_steps))

    raise typer.Exit(asyncio.run(_run(settings, start, terminal, creates=False)))


async def _run(
    settings: Settings, start: Callable[[RunHost], Awaitable[ShownRun]], terminal: Terminal, *, creates: bool
) -> int:
    async with open_run_host(settings, creates=creates) as host:
        handle = await start(host)
        if not terminal.as_json:
            model = handle.model
            begun = say("thread {}  model {}", handle.thread_id, model) if model else say("thread {}", handle.thread_id)
            terminal.err.print(f"[dim]{escape(begun)}[/dim]", highlight=False)
        code = await see_through(host, handle, terminal)
        await host.finish(terminal)
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
    settings = Settings.load(database=database)
    how = AskOptions(
        source=source, model=model, protocol=options.read_protocol(protocol), max_steps=max_steps, agent=agent
    )
    terminal = Terminal()
    # One loop for the whole conversation, left between questions: so Ctrl-C at the prompt just leaves.
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            host = runner.run(stack.enter_async_context(open_run_host(settings, creates=True)))
            may_be_new = source is not None or agent is not None
            thread_id = runner.run(host.find_thread_to_ask(thread, may_be_new=may_be_new)) or new_id()
            how = replace(how, thread_id=thread_id)
            terminal.err.print(f"[dim]{escape(say('thread {}', thread_id))}\n{say(_HELP)}[/dim]", highlight=False)
            while (question := _read_line()) is not None:
                if question:
                    how = runner.run(_answer(host, terminal, question, thread_id, how))
            runner.run(host.finish(terminal))
        finally:
            runner.run(stack.aclose())


async def _answer(host: RunHost, terminal: Terminal, question: str, thread_id: str, how: AskOptions) -> AskOptions:
    handle: ShownRun | None
    try:
        if terminal.asks and asks_to_continue(question) and await _waits(host, thread_id):
            handle = await decided_here(host, thread_id, terminal)
        else:
            handle = await host.ask(question, how)
        if handle is None:  # it is decided later still
            return how
        await see_through(host, handle, terminal)
    except StoreReadOnly:
        raise  # no other question can be answered either
    except LongthreadError as error:
        terminal.err.print(f"[red]{escape(translate(str(error)))}[/red]", highlight=False)
        return how
    return replace(how, source=None)


async def _waits(host: RunHost, thread_id: str) -> bool:
    """Whether a call waits that can be asked about again."""
    with suppress(ThreadNotFound):  # nothing has been asked yet
        return bool(await host.list_pending(thread_id))
    return False


def _read_line() -> str | None:
    try:
        line = input("\n? ").strip()
    except (EOFError, KeyboardInterrupt):
        return None
    return None if line in {"/quit", "/exit"} else line


def stop(thread: ThreadArgument, as_json: options.AsJson = False, database: options.Database = None) -> None:
    """Stop a run that waits for approval: its calls are not made, and what was done is kept."""
    settings = Settings.load(database=database)
    terminal = Terminal(as_json=as_json)

    async def work() -> None:
        async with open_run_host(settings, creates=False) as host:
            for event in await host.stop(await host.find_thread(thread)):
                terminal.show(event)

    asyncio.run(work())
