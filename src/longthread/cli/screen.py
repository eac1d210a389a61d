"""The way to a terminal: whatever names, titles, answers and errors hold, none of it commands the terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import rich.console
import typer
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from longthread.cli.language import say, translate
from longthread.model.markdown import in_line, visible


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
