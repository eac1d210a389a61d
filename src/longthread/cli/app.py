"""The command line: `longthread …`.

Exit codes: 0 finished · 1 failed · 2 bad input · 3 the source · 4 the thread is busy · 5 the store · 6 the model ·
7 the server cannot start · 10 paused · 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap

import typer
from rich.markup import escape

from longthread import __version__
from longthread.cli.commands import catalog, skills, teach, tool_trial
from longthread.cli.commands.approve import approve, reject
from longthread.cli.commands.ask import ask, resume
from longthread.cli.commands.chat import chat
from longthread.cli.commands.db import db
from longthread.cli.commands.doctor import doctor
from longthread.cli.commands.evals import evals
from longthread.cli.commands.forget import forget
from longthread.cli.commands.imports import import_
from longthread.cli.commands.mcp import mcp
from longthread.cli.commands.memories import memories
from longthread.cli.commands.recall import recall
from longthread.cli.commands.serve import demo, serve
from longthread.cli.commands.stop import stop
from longthread.cli.commands.threads import state, threads
from longthread.cli.commands.view import view
from longthread.cli.screen import Console, echo, make_logs_visible
from longthread.cli.terminal import print_line
from longthread.errors import LongthreadError

app = typer.Typer(
    name="longthread",
    help="Ask your database in natural language, in a conversation that is never lost.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 finished, 1 failed, 2 bad input, 3 source, 4 thread busy, 5 store, 6 model, 7 server cannot "
    "start, 10 paused, 130 stopped.",
)
for command in (demo, serve, mcp, ask, chat, resume, approve, reject, stop, state, view, recall, forget, doctor):
    app.command()(command)
app.command("import")(import_)
app.add_typer(threads, name="threads")
app.add_typer(memories, name="memories")
catalog.add_to(
    app, also={"skill": (skills.import_, skills.export), "tool": (tool_trial.run,), "source": (teach.teach,)}
)
app.add_typer(db, name="db")
app.add_typer(evals, name="eval")


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"longthread {__version__}")
        raise typer.Exit


@app.callback()
def _root(version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show it.")) -> None:
    """Ask your database in natural language, in a conversation that is never lost."""


def _restore_help(group: typer.Typer) -> None:
    """Read the help of the commands, which is their docstrings, from their source: `python -OO` drops docstrings."""
    for command in group.registered_commands:
        if command.help is None and command.callback is not None:
            function = ast.parse(textwrap.dedent(inspect.getsource(command.callback))).body[0]
            command.help = ast.get_docstring(function)  # type: ignore[arg-type]  # it is a function
    for below in group.registered_groups:
        if below.typer_instance is not None:
            _restore_help(below.typer_instance)


def main() -> None:
    """Run the command line; every error that Longthread raises becomes one line and its exit code."""
    make_logs_visible()
    if sys.flags.optimize > 1:
        _restore_help(app)
    try:
        app()
    except LongthreadError as error:
        if "--json" in sys.argv:
            print_line({"type": "failed", "error": error.described()})
        Console(stderr=True, soft_wrap=True).print(f"[red]Error:[/red] {escape(str(error))}", highlight=False)
        sys.exit(error.exit_code)
