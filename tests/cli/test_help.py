"""The help of the commands, which are loaded when they are needed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from longthread.cli import lazy
from longthread.cli.app import app

COMMANDS = (
    "demo serve gateway mcp ask chat resume approve reject stop state view recall forget login logout whoami doctor "
    "import export apply threads memories feedback agents skills tools sources upstreams routes users groups "
    "grants projects keys audit prices db plugins eval"
)
OF_THREADS = (
    "export import result chart runs tag metadata expire list search show rename archive unarchive pin unpin delete"
)
OF_THE_CATALOG = "list show apply delete"


def output(*arguments: str) -> str:
    """What a command prints."""
    return CliRunner().invoke(app, arguments).output


def listed(help_text: str) -> dict[str, str]:
    """The commands of a help text in its order, each with its own."""
    return dict(re.findall(r"^│ ([a-z-]+) +(\S.*?) *│$", help_text.partition("Commands")[2], re.MULTILINE))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("", COMMANDS),
        ("threads", OF_THREADS),
        ("export", "langgraph"),
        ("memories", "list add edit search show forget"),
        ("agents", OF_THE_CATALOG),
        ("skills", f"{OF_THE_CATALOG} import export"),
        ("tools", f"{OF_THE_CATALOG} run"),
        ("sources", f"{OF_THE_CATALOG} teach metrics"),
        ("upstreams", OF_THE_CATALOG),
        ("routes", OF_THE_CATALOG),
        ("grants", "add list remove"),
        ("db", "prune upgrade status copy backup restore index"),
        ("plugins", "list"),
        ("eval", "recall context sql linking analyst"),
    ],
)
def test_help_lists_each_command_in_its_place(group: str, names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    found = listed(output(*group.split(), "--help"))
    assert list(found) == names.split()
    assert all(found.values())


def test_a_command_that_is_misspelt_is_guessed() -> None:
    assert "'threads'" in output("thread")
    assert "'rename'" in output("threads", "renam")


def test_a_group_without_a_command_shows_its_help() -> None:
    assert "rename" in output("threads")


def leaves(command: Any) -> Iterator[Any]:
    """The commands below a group."""
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from leaves(command.get_command(None, name))
    if not hasattr(command, "list_commands"):
        yield command


def test_the_source_has_the_help_that_docstrings_give() -> None:
    """Which is where it comes from under `python -OO`."""
    read = 0
    for command in leaves(typer.main.get_command(app)):
        function = inspect.unwrap(command.callback)
        if function.__doc__ is not None:
            alone = typer.Typer()
            alone.command()(function)
            lazy.restore_help(alone)
            assert alone.registered_commands[0].help == command.help
            read += 1
    assert read > 40
