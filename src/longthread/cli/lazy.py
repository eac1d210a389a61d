"""Commands that are imported when they are needed, and their help in the language that is spoken."""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command, get_group

from longthread.cli.language import OPTION, choose, is_chinese, translate
from longthread.cli.server_choice import LOCAL, SERVER, find_login, work_where_chosen
from longthread.errors import ExtraMissing, PluginFailed
from longthread.errors.base import convert_errors

if TYPE_CHECKING:
    from longthread.plugins import Offer

_logger = logging.getLogger(__name__)


class _Formatter(typer.Context.formatter_class):  # type: ignore[misc,valid-type]  # Typer exports it by no other name
    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, translate("Usage: ") if prefix is None else prefix)


class _Context(typer.Context):
    formatter_class = _Formatter

    def __init__(self, command: Any, **given: Any) -> None:
        super().__init__(command, **given)
        if option := command.get_help_option(self):
            option.help = translate(option.help)


def take_options(command: Any, root: Any) -> None:
    """Let a command, and those below it, take `--lang`, `--server` and `--local` as `root` does; in their help they
    would only be in the way. One that works on a store finds out whether it shall work on a server."""
    for name in (OPTION, SERVER, LOCAL):
        option = next((each for each in root.params if name in each.opts), None)
        if option is not None and not any(name in each.opts for each in command.params):
            own = copy(option)
            own.hidden, own.expose_value = True, False
            command.params.append(own)
    if any(each.name == "database" for each in command.params):
        work_where_chosen(command, find_login)
    for each in _below(command):
        take_options(each, root)


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


def lazy_group(
    places: Mapping[str, str],
    find_more: Callable[[], Mapping[str, Offer]] = dict,
    packages: Mapping[str, str] = MappingProxyType({}),
) -> type[TyperGroup]:
    """Return a class of groups, for `typer.Typer(cls=…)`, with a command for each name in the order of its help.

    A place is `module:attribute`: a function, or the `typer.Typer` of a group. Help and completion load all of them,
    and the commands of plugins, which `find_more` finds. A name that is not in `places` is one of these.
    `packages` says which packages offer some of them.
    """

    class LazyGroup(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.commands: dict[str, Any] = dict.fromkeys(places)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if self.commands.get(cmd_name) is None and (command := self._load(cmd_name)) is not None:
                take_options(command, self)
                translate_help(command)
                self.commands[cmd_name] = command
            return super().get_command(ctx, cmd_name)

        def list_commands(self, ctx: Any) -> list[str]:
            for name in find_more():
                with log_plugin_failure():
                    self.get_command(ctx, name)
            return super().list_commands(ctx)

        def _load(self, name: str) -> Any:
            place = places.get(name)
            return _make_command(name, _import_place(place)) if place else _load_offer(name, find_more(), packages)

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


def _import_place(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _load_offer(name: str, offers: Mapping[str, Offer], packages: Mapping[str, str]) -> Any:
    """Return the command that a plugin offers under a name; None: it is no command. Raises ExtraMissing: the package
    of the command is not installed; PluginFailed."""
    if offer := offers.get(name):
        return _make_offered_command(name, offer)
    if package := packages.get(name):
        from longthread.plugins import plugins

        missing = ExtraMissing(what=f"`longthread {name}`", package=package, extra=package)
        raise plugins().find_failure(package) or missing
    return None


def _make_offered_command(name: str, offer: Offer) -> Any:
    from longthread.plugins import describe_error

    function = offer.load()
    with convert_errors(lambda error: PluginFailed(plugin=offer.plugin, reason=describe_error(error)), keep=()):
        return _make_command(name, function)  # Typer may not be able to read it


@contextmanager
def log_plugin_failure() -> Iterator[None]:
    """Log why a command of a plugin cannot be loaded: the help lists the others."""
    try:
        yield
    except PluginFailed as error:
        _logger.warning("%s", error)


def _make_command(name: str, function: Any) -> Any:
    is_group = isinstance(function, typer.Typer)
    app = function if is_group else typer.Typer(add_completion=False)
    if not is_group:
        app.command(name)(function)
    if sys.flags.optimize > 1:
        restore_help(app)
    command = get_group(app) if is_group else get_command(app)
    command.name = name
    return command


def restore_help(app: typer.Typer) -> None:
    """Read the help of the commands, which is their docstrings, from their source: `python -OO` drops docstrings."""
    for command in app.registered_commands:
        if command.help is None and command.callback is not None:
            function = ast.parse(textwrap.dedent(inspect.getsource(command.callback))).body[0]
            command.help = ast.get_docstring(function)  # type: ignore[arg-type]  # it is a function
