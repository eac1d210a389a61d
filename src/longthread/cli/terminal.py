"""What a person sees in a terminal: steps on stderr as they happen, the answer on stdout.

A run is shown to its end, which a signal brings about early. Whatever names, titles, answers and errors hold, none of
it commands the terminal.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import rich.console
import typer
from rich.console import ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

from longthread.cli.language import say, translate, translate_note
from longthread.model.markdown import in_line, visible
from longthread.model.run import HALTS, Event
from longthread.settings import DEFAULT_USER

if TYPE_CHECKING:
    from longthread.runs.analyst import Analyst


class Console(rich.console.Console):
    """Rich's, which shows no character that is none of its own."""

    def render_str(self, text: str, **how: Any) -> Text:
        """A text as it is shown."""
        return super().render_str(visible(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces of anything else that is shown, such as a text that was put together."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=visible(piece.text))


def echo(template: str, *values: object, err: bool = False) -> None:
    """Print a line of the command line's own, in the language that is spoken, with values at its `{}`."""
    typer.echo(visible(say(template, *values)), err=err)


def echo_made(text: str) -> None:
    """Print a line that something else has made, such as a warning, to standard error."""
    typer.echo(visible(translate(text)), err=True)


def echo_data(text: str) -> None:
    """Print a line that is not ours, or for a program: as it is."""
    typer.echo(visible(text))


def confirm(question: str, *values: object) -> None:
    """Ask whether to go on; the command ends where the answer is no."""
    try:
        agreed = typer.confirm(visible(say(question, *values)), err=True)
    except typer.Abort:
        echo("Nobody answered, and nothing was changed. Where nobody can be asked, give --yes.", err=True)
        raise
    if not agreed:
        raise typer.Abort


def join_by_tabs(fields: Iterable[str]) -> str:
    """Fields for a program, parted by tabs: each stays one."""
    return "\t".join(map(in_line, fields))


class _Visible(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def make_logs_visible() -> None:
    """Let warnings on standard error, where no log is configured, show no more than other output does.

    Warnings of psycopg, one for each attempt to connect, are left to the error that the attempts end in.
    """
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Visible())
    logging.getLogger("psycopg").setLevel(logging.ERROR)


class Terminal:
    """Shows a run's events to a person, or prints them as JSON lines to a program."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.out = Console(soft_wrap=not sys.stdout.isatty())
        self.err = Console(stderr=True, soft_wrap=True)

    @property
    def asks(self) -> bool:
        """Whether somebody sits here who can be asked."""
        return not self.as_json and sys.stdin.isatty() and sys.stderr.isatty()

    def show(self, event: Event) -> None:
        """Show one event."""
        if self.as_json:
            print_line(event.to_json())
            return
        match event.type:
            case "thought":
                self.err.print(f"[dim]· {escape(_shorten_line(event.data['text']))}[/dim]")
            case "step_started":
                self.err.print(
                    f"[cyan]› {escape(event.data['action'])}[/cyan] {escape(_shorten_args(event.data['args']))}"
                )
            case "step_finished":
                self._show_result(event.data)
            case "waiting":
                self.show_waiting(event.thread_id, event.data["calls"])
            case "decided":
                for call in event.data["calls"]:
                    said = escape(f"{say(call['decision'])} {by_user(call['by'], say('by user {}'))}".rstrip())
                    self.err.print(f"[cyan]› {escape(call['tool'])}[/cyan] {said}")
            case "warning":
                self.err.print(f"[yellow]! {escape(translate_note(event.data['message']))}[/yellow]")
            case "finished":
                self._show_answer(event.data)
            case "paused":
                self._show_pause(event)
            case "failed":
                self.err.print(f"[red]✗ {escape(translate(event.data['error']['message']))}[/red]")

    def show_waiting(self, thread_id: str, calls: Sequence[Mapping[str, Any]]) -> None:
        """Show the calls that wait, and how to decide about them where the terminal asks no user."""
        self.err.print(f"[yellow]‖ {say('Waiting for approval.')}[/yellow]")
        if self.asks:
            return
        for call in calls:
            self.show_call(call)
        # By its id: when somebody decides, it may be another call that waits.
        one = f" --call {calls[0]['id'] if len(calls) == 1 else 'ID'}"
        name = shlex.quote(thread_id)
        for command in (f"approve {name}{one}", f"reject {name}{one} --reason …"):
            self.err.print(f"[dim]longthread {escape(command)}[/dim]", highlight=False)

    def show_waiting_below(self, thread_ids: Sequence[str]) -> None:
        """Show that agents that were asked wait for approval, and where it is decided."""
        for each in thread_ids:
            self.err.print(f"[yellow]‖ {say('An agent that was asked waits for approval.')}[/yellow]")
            self.err.print(f"[dim]longthread approve {escape(each)}[/dim]", highlight=False)

    def show_call(self, call: Mapping[str, Any]) -> None:
        """Show a call that waits, with all of its arguments: they are what somebody decides about."""
        tool, args = in_line(call["tool"]), json.dumps(call["args"], ensure_ascii=False, indent=2)
        self.err.print(f"[cyan]? {escape(tool)}[/cyan]  [dim]{escape(call['id'])}[/dim]", highlight=False)
        if call["description"]:
            said = visible(_shorten_line(call["description"]))
            self.err.print(f"  {said}", style="dim", markup=False, highlight=False)
        self.err.print(visible(args), markup=False, highlight=False)

    def _show_result(self, data: Mapping[str, Any]) -> None:
        took = f"{data['elapsed_ms']} ms"
        if not data["ok"]:
            error = data["observation"].get("error") or {}
            said = translate(str(error.get("message", "failed")))
            self.err.print(f"  [red]✗ {escape(said)}[/red] [dim]{took}[/dim]")
            return
        found = data["observation"].get("data")
        shown = found.get("shown") or found.get("columns_shown") if isinstance(found, dict) else None
        if isinstance(found, dict) and found.get("query"):
            told = f"[{found['query']}] {_count_rows(str(shown or ''))}"
        else:
            told = _translate_part(str(shown or ""))
        self.err.print(f"  [green]✓[/green] [dim]{escape(told)}  {took}[/dim]")

    def _show_answer(self, data: Mapping[str, Any]) -> None:
        answer = str(data["answer"])
        self._print_text(answer)
        for query in data["queries"]:
            # An answer that shows its query itself need not be followed by it again.
            if f"[{query['query']}]" in answer and query["sql"] not in answer:
                self._print_sql(query["query"], query["sql"], query.get("metrics") or ())

    def _show_pause(self, event: Event) -> None:
        said = say(_PAUSES.get(event.data["reason"], event.data["reason"]))
        self.err.print(f"[yellow]‖ {escape(said)}[/yellow]")
        self._print_text(str(event.data.get("summary", "")))
        hint, command = translate(event.data.get("hint", "")), f"longthread resume {shlex.quote(event.thread_id)}"
        self.err.print(f"[dim]{escape(hint)}  {escape(command)}[/dim]")

    def _print_text(self, text: str) -> None:
        if self.out.is_terminal:
            from rich.markdown import Markdown

            self.out.print(Markdown(visible(text)))
        else:
            self.out.print(text, markup=False, highlight=False)

    def _print_sql(self, label: str, sql: str, metrics: Sequence[str]) -> None:
        of = in_line(say("metric {}: ", ", ".join(metrics))) if metrics else ""
        if self.out.is_terminal:
            from rich.syntax import Syntax

            self.out.print(f"\n[dim]{escape(f'[{label}] {of}')}[/dim]")
            self.out.print(Syntax(visible(sql), "sql", background_color="default", word_wrap=True))
        else:
            self.out.print(f"\n[{label}] {of}{sql}", markup=False, highlight=False)


def by_user(name: str | None, words: str = "by user {}") -> str:
    """Return who decided, as words; empty where no user is named. For such a user, `by default` would read as if no
    person had decided."""
    return "" if name in {None, DEFAULT_USER} else words.format(json.dumps(name, ensure_ascii=False))


def print_line(data: Mapping[str, Any]) -> None:
    """One JSON object on one line of stdout."""
    # What is escaped here is escaped as in JSON: it says the same.
    sys.stdout.write(visible(json.dumps(data, ensure_ascii=False, default=str)) + "\n")
    sys.stdout.flush()


_PAUSES = {
    "max_steps": "Paused: the steps are used up.",
    "repeated": "Paused: the model repeats a call that fails.",
    "budget_spent": "Paused: the budget is spent.",
    "stopped": "Stopped. What was done is kept.",
}


def _shorten_args(args: Mapping[str, Any]) -> str:
    if not args:
        return ""
    text = str(next(iter(args.values()))) if len(args) == 1 else json.dumps(args, ensure_ascii=False)
    return _shorten_line(text)


def _count_rows(shown: str) -> str:
    """How many rows a result has, from `N of M`, as words."""
    here, _, there = shown.partition(" of ")
    count = here if there == here else _translate_part(shown)
    return say("{} row" if count == "1" else "{} rows", count)


def _translate_part(shown: str) -> str:
    """`N of M`, in the language that is spoken."""
    here, among, there = shown.partition(" of ")
    return say("{0} of {1}", here, there) if among else shown


def _shorten_line(text: str, limit: int = 200) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[:limit]}…"


PAUSED = 10
STOPPED = 130
_QUIET_SECONDS = 0.5
"""How long the end of a command may take before it is said why."""


class ShownRun(Protocol):
    """A run that is shown, wherever it is executed."""

    @property
    def thread_id(self) -> str: ...

    @property
    def model(self) -> str:
        """What answers; empty where the server has not said it yet."""

    def events(self) -> AsyncIterator[Event]:
        """Yield the run's events up to the one that ends it, or the one that it waits."""

    async def stop(self) -> None:
        """Stop the run: its events go on to its end."""


async def show_run(handle: ShownRun, terminal: Terminal) -> int:
    """Show a run until it ends or waits; Ctrl-C brings its end about early. The exit code that says how it ended."""
    async with _stopped_by_signal(handle):
        async for event in handle.events():
            terminal.show(event)
            if event.type in HALTS:
                return _exit_code(event)
    return 1


def _exit_code(event: Event) -> int:
    if event.type in {"paused", "waiting"}:
        return STOPPED if event.data.get("reason") == "stopped" else PAUSED
    return 0 if event.type == "finished" else _FAILURES.get(event.data["error"]["type"], 1)


_FAILURES = {"model_failed": 6, "model_unavailable": 6, "source_locked": 3, "source_error": 3, "store_error": 5}


async def finish_summary(analyst: Analyst, terminal: Terminal) -> None:
    """Let a summary that is being written be finished. Ctrl-C leaves that to the next process: its digest is stored."""
    if not analyst.pruner.is_busy:
        return
    work = asyncio.ensure_future(analyst.pruner.settle())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, work.cancel)
    try:
        done, _ = await asyncio.wait({work}, timeout=_QUIET_SECONDS)
        if not done and not terminal.as_json:
            said = say("Writing the summary of the conversation. Ctrl-C leaves it to the next command.")
            terminal.err.print(f"[dim]{said}[/dim]")
        await asyncio.wait({work})
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@asynccontextmanager
async def _stopped_by_signal(handle: ShownRun) -> AsyncIterator[None]:
    """Ctrl-C and a polite kill stop the run and keep it, in place of ending the process in the middle of it."""
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[Any]] = []

    def stop() -> None:
        stopping.append(loop.create_task(handle.stop()))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        yield
        await asyncio.gather(*stopping)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
