"""`longthread approve` and `longthread reject`, and what a person at a terminal is asked."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longthread.cli import options
from longthread.cli.find_thread import find_thread
from longthread.cli.language import say, translate
from longthread.cli.show_run import PAUSED, finish_summary, show_run
from longthread.cli.terminal import Terminal, print_line
from longthread.errors import InvalidInput, LongthreadError, NotPending
from longthread.model.approval import Approval, Decision
from longthread.settings import Settings
from longthread.tools.arguments import Arguments

if TYPE_CHECKING:
    from longthread.runs.analyst import Analyst
    from longthread.runs.handle import RunHandle

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
    thread: str, call: str | None, decision: Decision, terminal: Terminal, *, database: str | None, **how: Any
) -> None:
    settings = Settings.load(database=database)

    async def work() -> int:
        # Here and not above: LangChain takes seconds to load, and most commands need none of it.
        from longthread.runs.analyst import Analyst

        async with Analyst.open(settings, creates=False) as analyst:
            thread_id = str(await find_thread(analyst.store, thread, user=settings.user))
            hint = await analyst.approvals.why_none_waits(thread_id, user_id=settings.user)
            pending = await analyst.approvals.pending(thread_id, user_id=settings.user)
            chosen = _chosen(pending, thread_id, call, hint)
            if decision.type == "edit" and len(chosen) > 1:
                raise InvalidInput(reason="Several calls wait. Say with --call which one has these arguments.")
            decisions = {each.call_id: decision for each in chosen}
            handle = await analyst.approvals.decide(thread_id, decisions, user_id=settings.user, **how)
            if handle is not None:
                code = await see_through(analyst, handle, terminal)
                await finish_summary(analyst, terminal)
                return code
            left = await analyst.approvals.pending(thread_id, user_id=settings.user)
            if terminal.as_json:
                print_line({"type": "waiting", "thread_id": thread_id, "calls": [each.request() for each in left]})
            else:
                terminal.show_waiting(thread_id, [each.request() for each in left])
            return PAUSED

    raise typer.Exit(asyncio.run(work()))


def _chosen(waiting: Sequence[Approval], thread_id: str, given: str | None, hint: str) -> list[Approval]:
    """The calls that are meant. Raises NotPending, and InvalidInput where several begin so."""
    exact = [each for each in waiting if each.call_id == given]
    found = exact or [each for each in waiting if each.call_id.startswith(given or "")]
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


async def see_through(analyst: Analyst, handle: RunHandle, terminal: Terminal) -> int:
    """Show a run to its end, and ask whoever sits at the terminal about the calls that wait; the exit code."""
    while True:
        code = await show_run(handle, terminal)
        went_on = await decided_here(analyst, handle.thread_id, terminal) if code == PAUSED else None
        if went_on is None:
            if not terminal.as_json:
                below = await analyst.approvals.waiting_below(handle.thread_id, user_id=analyst.settings.user)
                terminal.show_waiting_below(below)
            return code
        handle = went_on


async def decided_here(analyst: Analyst, thread_id: str, terminal: Terminal) -> RunHandle | None:
    """Ask whoever sits at the terminal about the calls that wait, and go on. None where nobody is asked, or decides."""
    if not terminal.asks:
        return None
    decisions: dict[str, Decision] = {}
    for call in await analyst.approvals.pending(thread_id, user_id=analyst.settings.user):
        terminal.show_call(call.request())
        decision = asked(call.tool, call.parameters, terminal)
        if decision is None:
            return None
        decisions[call.call_id] = decision
    return await analyst.approvals.decide(thread_id, decisions, user_id=analyst.settings.user) if decisions else None


def asked(tool: str, parameters: Mapping[str, Any], terminal: Terminal) -> Decision | None:
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
                return Decision("edit", Arguments(parameters, tool=tool).checked(arguments_of(text)))
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
