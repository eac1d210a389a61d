"""Whatever the command line says has Chinese: each help, each error, each text of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, get_args

import pytest
import typer

import longthread
from longthread.cli import language, terminal
from longthread.cli.app import app
from longthread.cli.commands import serve, view
from longthread.cli.language import MADE_ELSEWHERE, read_chinese, translate
from longthread.errors import LongthreadError
from longthread.model.catalog import Kind
from longthread.model.run import How, Outcome, RunStatus
from longthread.phrasebook import Phrasebook, fields_of, literals_of
from longthread.plugins import OfferKind

pytestmark = pytest.mark.one_backend

SOURCES = Path(longthread.__file__).parent
EVALS = Path(__file__).parents[3] / "evals/src"
COMMAND_LINE = [*SOURCES.glob("cli/**/*.py"), *EVALS.glob("**/commands.py")]
SCHEMA = SOURCES / "store/sql/common/schema/tables.sql"
SPEAKERS = {"say", "echo", "confirm", "show_progress"}
"""Functions whose first argument is a text of the command line's own."""
CODE = re.compile(r"`[^`]*`|(?<![\w-])--[a-z][a-z-]*|\b[A-Z]+_[A-Z_]+\b")
"""What a person types, or sets."""
RELAYED = {"reason", "problem", "problems", "nearest", "remedy", "hint", "versions", "power"}
"""Fields of errors that hold sentences of ours."""


def is_chinese(text: str) -> bool:
    return re.search("[\u4e00-\u9fff]", text) is not None


def leaves(command: Any) -> Iterator[Any]:
    yield command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from leaves(command.get_command(None, name))


def test_the_help_of_each_command_and_option_has_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    language.choose(())
    book = Phrasebook({key: text for name in MADE_ELSEWHERE for key, text in read_chinese(name).items()})
    helps = [
        (command.name, text)
        for command in leaves(typer.main.get_command(app))
        for text in (command.help, command.epilog, *(option.help for option in command.params))
        if text
    ]
    assert len(helps) > 400
    assert {text: name for name, text in helps if not is_chinese(book.translate(text))} == {}


def kinds(root: type[LongthreadError] = LongthreadError) -> Iterator[type[LongthreadError]]:
    yield root
    for kind in root.__subclasses__():
        yield from kinds(kind)


def test_each_error_has_chinese_with_all_that_it_names(chinese: None) -> None:
    errors = read_chinese("errors")
    messages = {kind.message for kind in kinds() if kind.__module__.startswith("longthread.errors")} - {"{reason}"}
    assert len(messages) > 120
    assert messages == errors.keys()
    for message in messages:
        relayed = {name for _, name, _, how in Formatter().parse(errors[message]) if name and how == "t"}
        assert relayed >= RELAYED & set(fields_of(message)), message
        filled = message.format_map({name: f"[{name}]" for name in fields_of(message)})
        assert is_chinese(translate(filled)), message
        assert all(f"[{name}]" in translate(filled) for name in fields_of(message)), message


def texts(node: ast.AST, names: dict[str, list[str]]) -> list[str]:
    """The texts that an expression may be, where it is written out."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.IfExp):
        return texts(node.body, names) + texts(node.orelse, names)
    if isinstance(node, ast.BinOp):
        return [left + right for left in texts(node.left, names) for right in texts(node.right, names)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)]
    return names.get(node.id, []) if isinstance(node, ast.Name) else []


def spoken(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The texts of a module of the command line: what is said, and the reasons of its errors."""
    names: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names.setdefault(node.targets[0].id, []).extend(texts(node.value, {}))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "id", "")
        if called in SPEAKERS and node.args:
            yield from (("own", text) for text in texts(node.args[0], names))
        if called == "counted":
            for noun in texts(node.args[1], names):
                yield "own", f"{{:,}} {noun[:-1]}ies" if noun.endswith("y") else f"{{:,}} {noun}s"
        for given in node.keywords:
            if given.arg == "reason":
                yield from (("reasons", text) for text in texts(given.value, names) if " " in text)


def test_what_the_command_line_says_has_chinese() -> None:
    own, reasons = read_chinese("own"), read_chinese("reasons")
    book = Phrasebook(reasons)
    found = {each for path in COMMAND_LINE for each in spoken(ast.parse(path.read_text("utf-8")))}
    said = {text for kind, text in found if kind == "own" and re.search("[a-z]", text)}
    assert len(said) > 150
    assert said - own.keys() == set()
    given = {text for kind, text in found if kind == "reasons"}
    assert len(given) > 40
    whole = {text for text in given if len(text.replace("{}", "")) > 20}  # else they are put together of others
    assert {text for text in whole if not is_chinese(book.translate(text.replace("{}", "x")))} == set()
    words = {*get_args(How), *get_args(Outcome), *get_args(Kind), *get_args(RunStatus), *get_args(OfferKind)}
    words |= {*view._WHY.values(), *view._TIERS.values(), *terminal._PAUSES.values(), *serve._KEPT.values()} - {""}
    assert words - own.keys() == set()


@cache
def sources() -> str:
    """All texts of the sources, those of f-strings with {} for their values."""
    found: list[str] = []
    for path in [*SOURCES.rglob("*.py"), *EVALS.rglob("*.py")]:
        if "page" not in path.parts:
            nodes = ast.walk(ast.parse(path.read_text("utf-8")))
            found += [text for node in nodes for text in texts(node, {}) if not isinstance(node, ast.BinOp)]
    return "\n".join(" ".join(text.split()) for text in found)


def test_no_chinese_is_left_of_what_nothing_says_any_more() -> None:
    said = sources()
    tables = {
        f"{{:,}} {table.replace('_', ' ')}" for table in re.findall(r"(?i)create table (\w+)", SCHEMA.read_text())
    }
    keys = (read_chinese("own") | read_chinese("reasons")).keys() - tables
    assert [key for key in keys if not any(part[:20].strip() in said for part in literals_of(key))] == []


def test_chinese_names_the_same_values_commands_and_settings() -> None:
    for name in ("own", *MADE_ELSEWHERE):
        for key, text in read_chinese(name).items():
            names = fields_of(key)
            known = {str(number) for number in range(len(names))} if set(names) == {""} else set(names)
            assert set(fields_of(text)) - {""} <= known, key
            assert name in ("own", "help", "libraries") or set(fields_of(text)) == known, key
            assert name == "help" or set(CODE.findall(key)) == set(CODE.findall(re.sub(r"\{\d\}", "{}", text))), key


def test_what_is_recognised_says_enough_to_be_recognised() -> None:
    keys = {key for name in ("errors", "help", "reasons") for key in read_chinese(name) if fields_of(key)}
    assert [key for key in keys if sum(map(len, literals_of(key))) < 8] == []


def test_no_text_is_filled_before_it_is_translated() -> None:
    filled = [
        f"{path.name}:{call.lineno}"
        for path in sorted(COMMAND_LINE)
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in SPEAKERS and call.args
        if isinstance(call.args[0], ast.JoinedStr)
    ]
    assert filled == []
