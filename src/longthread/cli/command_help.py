"""The help of commands, and what Typer itself says, in the language that is spoken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import typer
from typer.exceptions import TyperException

from longthread.cli.language import OPTION, is_chinese, translate


class _Formatter(typer.Context.formatter_class):  # type: ignore[misc,valid-type]  # Typer exports it by no other name
    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, translate("Usage: ") if prefix is None else prefix)


class _Context(typer.Context):
    formatter_class = _Formatter

    def __init__(self, command: Any, **given: Any) -> None:
        super().__init__(command, **given)
        if option := command.get_help_option(self):
            option.help = translate(option.help)


def take_language(command: Any, root: Any) -> None:
    """Let a command, and those below it, take `--lang` as `root` does; in their help it would only be in the way."""
    option = next((each for each in root.params if OPTION in each.opts), None)
    if option is not None and not any(OPTION in each.opts for each in command.params):
        own = copy(option)
        own.hidden, own.expose_value = True, False
        command.params.append(own)
    for each in _below(command):
        take_language(each, root)


def translate_help(command: Any) -> None:
    """Say the help of a command, of its options, and of those below it, as far as they are loaded."""
    if not is_chinese():
        return
    command.context_class = _Context
    for each in (command, *command.params):
        each.help = each.help and translate(each.help)
    command.epilog = command.epilog and translate(command.epilog)
    for each in _below(command):
        translate_help(each)


def translate_typer() -> None:
    """Let Typer, which asks gettext for its own words, ask the phrasebook."""
    if not is_chinese():
        return
    from typer import core, rich_utils

    vars(core)["_"] = translate  # gettext, under the name by which Typer calls it
    for name, text in list(vars(rich_utils).items()):
        if name.isupper() and isinstance(text, str):
            setattr(rich_utils, name, translate(text))


@contextmanager
def translated_errors() -> Iterator[None]:
    """Say what is wrong with arguments, as Typer finds it, in the language that is spoken."""
    try:
        yield
    except TyperException as error:
        found: Any = error
        if is_chinese() and hasattr(found, "format_message"):
            said = translate(found.format_message())
            found.format_message = lambda: said
        raise


def _below(command: Any) -> Iterator[Any]:
    return (each for each in getattr(command, "commands", {}).values() if each is not None)
