"""The command line: `longthread …`.

Exit codes: 0 finished · 1 failed · 2 bad input · 3 the source · 4 the thread is busy · 5 the store · 6 the model ·
7 the server cannot start · 10 paused · 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

import longthread
from longthread import __version__
from longthread.cli.commands import COMMANDS, PACKAGE_COMMANDS
from longthread.cli.language import OPTION, SpokenLanguage, say, translate
from longthread.cli.lazy import lazy_group
from longthread.cli.server_choice import LocalStore, NamedServer
from longthread.cli.terminal import Console, echo_data, make_logs_visible, print_line
from longthread.errors import ExtraMissing, LongthreadError
from longthread.extras import is_of_app

if TYPE_CHECKING:
    from longthread.plugins import Offer


def _plugin_commands() -> Mapping[str, Offer]:
    """Return the commands of installed plugins, which a command of the core does not look for."""
    from longthread.plugins import plugins

    return plugins().list_added("commands")


app = typer.Typer(
    name="longthread",
    cls=lazy_group(COMMANDS, find_more=_plugin_commands, packages=PACKAGE_COMMANDS),
    help="Ask your database in natural language, in a conversation that is never lost.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 finished, 1 failed, 2 bad input, 3 source, 4 thread busy, 5 store, 6 model, 7 server cannot "
    "start, 10 paused, 130 stopped.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        commit = _read_commit()
        echo_data(f"longthread {__version__}" + (f" ({commit})" if commit else ""))
        raise typer.Exit


def _read_commit() -> str:
    """Return the commit that this package was built from, or that of its clone; empty: neither is known."""
    package = Path(longthread.__file__).parent
    built, clone = package / "commit.txt", package.parents[1]
    if built.is_file():
        return built.read_text("utf-8").strip()
    if not (clone / ".git").exists():
        return ""
    with suppress(OSError):  # there is no Git
        command = ["git", "-C", str(clone), "rev-parse", "--short=8", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return ""


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show it."),
    lang: SpokenLanguage | None = typer.Option(
        None,
        OPTION,
        help="The language of help, messages and errors; by default that of LONGTHREAD_LANG or the locale.",
    ),
    server: NamedServer = None,
    local: LocalStore = False,
) -> None:
    """Ask your database in natural language, in a conversation that is never lost."""


def _run_command() -> None:
    """Run a command. Raises `ExtraMissing` where it needs the extra `app`."""
    try:
        app()
    except ModuleNotFoundError as error:
        if not is_of_app(error):
            raise
        command = next((each for each in sys.argv[1:] if each in (*COMMANDS, *PACKAGE_COMMANDS)), "")
        raise ExtraMissing(what=f"`longthread {command}`", package=str(error.name), extra="app") from error


def main() -> None:
    """Run the command line; every error that Longthread raises becomes one line and its exit code."""
    make_logs_visible()
    try:
        _run_command()
    except LongthreadError as error:
        if "--json" in sys.argv:
            print_line({"type": "failed", "error": error.described()})
        said = f"[red]{say('Error: ')}[/red]{escape(translate(str(error)))}"
        Console(stderr=True, soft_wrap=True).print(said, highlight=False)
        sys.exit(error.exit_code)
