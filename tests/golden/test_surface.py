"""The commands with their options, the routes of the API and the public names are those that are recorded.

To record a change that a user shall see: LONGTHREAD_TEST_RECORD=1 pytest -m "slow or not slow" tests/golden.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.golden.normalizer import dump
from tests.golden.transcript import expect_recorded

from longthread import Settings, create_app
from longthread.cli.app import app
from longthread.cli.language import OPTION, choose
from longthread.cli.lazy import translate_help

PUBLIC = (
    "longthread",
    "longthread.conversation_state",
    "longthread.errors",
    "longthread.langgraph",
    "longthread.testing",
)


@pytest.fixture
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    """The language of messages during a test."""
    choose([OPTION, request.param])
    yield request.param
    choose([OPTION, "en"])


@pytest.mark.parametrize("language", ["en", "zh"], indirect=True)
def test_help(language: str) -> None:
    root = typer.main.get_command(app)
    translate_help(root)
    lines = _describe_command(root, root.context_class(root, info_name="longthread"))
    expect_recorded(f"help.{language}.txt", "\n".join(lines) + "\n")


def _describe_command(command: Any, context: Any) -> Iterator[str]:
    """Yield the usage, description, arguments, options and epilog of a command and of its subcommands."""
    yield " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from (f"    {line}".rstrip() for line in inspect.cleandoc(command.help or "").splitlines())
    for record in (each.get_help_record(context) for each in command.get_params(context)):
        if record is not None:
            yield f"    {record[0]}\t{record[1]}".rstrip()
    if command.epilog:
        yield f"    {command.epilog}"
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        subcommand = command.get_command(context, name)
        yield from _describe_command(subcommand, subcommand.context_class(subcommand, info_name=name, parent=context))


def test_openapi(tmp_path: Path) -> None:
    description = create_app(Settings.of(data_dir=tmp_path)).openapi()
    expect_recorded("openapi.json", dump(_sort_alternatives(description), sort=True) + "\n")


def _sort_alternatives(value: Any) -> Any:
    """Sort the lists of `oneOf`: their order says nothing, and differs from run to run."""
    if isinstance(value, dict):
        sorted_values = {key: _sort_alternatives(each) for key, each in value.items()}
        return sorted_values | {"oneOf": sorted(sorted_values["oneOf"], key=str)} if "oneOf" in value else sorted_values
    return [_sort_alternatives(each) for each in value] if isinstance(value, list) else value


def test_public_names() -> None:
    lines = (line for module in PUBLIC for line in _list_names(importlib.import_module(module)))
    expect_recorded("names.txt", "\n".join(lines) + "\n")


def _list_names(module: Any) -> Iterator[str]:
    """Yield the public names of a module with their signatures, and the members of its classes."""
    yield f"{module.__name__}"
    for name in sorted(module.__all__):
        value = getattr(module, name)
        yield f"  {name}{_format_signature(value)}"
        if inspect.isclass(value):
            yield from (f"    {each}" for each in _list_members(value))


def _list_members(value: type) -> Iterator[str]:
    for name in sorted(set(dir(value))):
        owner = next((each for each in value.__mro__ if name in vars(each)), object)
        if not name.startswith("_") and owner.__module__.startswith("longthread"):
            member = getattr(value, name)
            plain = isinstance(member, str | int | tuple)
            yield f"{name} = {member!r}" if plain else f"{name}{_format_signature(member)}"


def _format_signature(value: Any) -> str:
    """Write a signature as it is written in the code; what Pydantic derives from fields has no annotations here."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        each if isinstance(each.annotation, str) else each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
    ]
    return re.sub(r"<function [^>]*>", "<function>", str(signature.replace(parameters=parameters)))
