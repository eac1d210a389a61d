"""Commands that are imported when they are needed: a process only loads the one that it runs."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from longthread.cli.command_help import take_language, translate_help, translate_typer, translated_errors
from longthread.cli.language import choose


def lazy_group(places: Mapping[str, str]) -> type[TyperGroup]:
    """A class of groups, for `typer.Typer(cls=…)`, with a command for each name in the order of its help.

    A place is `module:attribute` in `longthread.cli.commands`: a function, or the `typer.Typer` of a group. Help and
    completion load all of them.
    """

    class LazyGroup(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.commands: dict[str, Any] = dict.fromkeys(places)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name in places and self.commands[cmd_name] is None:
                made = _command(cmd_name, places[cmd_name])
                take_language(made, self)
                translate_help(made)
                self.commands[cmd_name] = made
            return super().get_command(ctx, cmd_name)

        def main(self, *given: Any, **named: Any) -> Any:
            arguments = given[0] if given else named.get("args")
            choose(sys.argv[1:] if arguments is None else arguments)
            translate_typer()
            translate_help(self)
            return super().main(*given, **named)

        def make_context(self, *given: Any, **named: Any) -> Any:
            with translated_errors():
                return super().make_context(*given, **named)

        def invoke(self, ctx: Any) -> Any:
            with translated_errors():
                return super().invoke(ctx)

    return LazyGroup


def _command(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    found = getattr(importlib.import_module(f"longthread.cli.commands.{module}"), attribute)
    is_group = isinstance(found, typer.Typer)
    app = found if is_group else typer.Typer(add_completion=False)
    if not is_group:
        app.command(name)(found)
    if sys.flags.optimize > 1:
        restore_help(app)
    made = get_group(app) if is_group else get_command(app)
    made.name = name
    return made


def restore_help(app: typer.Typer) -> None:
    """Read the help of the commands, which is their docstrings, from their source: `python -OO` drops docstrings."""
    for command in app.registered_commands:
        if command.help is None and command.callback is not None:
            function = ast.parse(textwrap.dedent(inspect.getsource(command.callback))).body[0]
            command.help = ast.get_docstring(function)  # type: ignore[arg-type]  # it is a function
