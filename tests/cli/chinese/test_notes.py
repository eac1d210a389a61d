"""Whatever a run warns of, and each note on a file or a result, has Chinese."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

import pytest

import longthread
from longthread.llm import providers
from longthread.phrasebook import note_in_chinese

pytestmark = pytest.mark.one_backend

SOURCES = Path(longthread.__file__).parent
FOLDERS = ("builtin", "runs", "tools")
OTHERS = {"branch_note", "write_cut_note", "with_edit_note"}
"""Functions whose notes are for models, or have both languages."""
VALUE = "7"
"""Stands for a value that is filled in."""
SPEAKING = re.compile(r"_notes?$")
ENGLISH = re.compile(r"[a-z]{2,} [a-z]{2,}")
CODE = re.compile(r"`[^`]*`")
Names = Mapping[str, list[tuple[int, ast.expr]]]


def alternatives(node: ast.AST | None, names: Names) -> list[str]:
    """The texts that an expression may be, with what is assigned before it in its function; none if it is no text."""
    match node:
        case ast.Constant(value=str() as text):
            return [text]
        case ast.Name(id=name):
            assigned = [value for line, value in names.get(name, ()) if line < node.lineno]
            return [text for value in assigned for text in alternatives(value, names)]
        case ast.IfExp(body=one, orelse=other):
            return alternatives(one, names) + alternatives(other, names)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return ["".join(each) for each in product(alternatives(left, names), alternatives(right, names))]
        case ast.JoinedStr(values=values):
            parts = [alternatives(getattr(part, "value", part), names) or [VALUE] for part in values]
            literal = [[part.value] if isinstance(part, ast.Constant) else None for part in values]
            chosen = [given or found for given, found in zip(literal, parts, strict=True)]
            return ["".join(map(str, each)) for each in product(*chosen)]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as between), attr="join")):
            return [f"{VALUE}{between}{VALUE}"]
        case ast.Subscript(value=ast.Dict(values=values)):
            return [text for value in values for text in alternatives(value, names)]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [text for item in items for text in alternatives(item, names)]
        case ast.Starred(value=inner) | ast.NamedExpr(value=inner) | ast.ListComp(elt=inner):
            return alternatives(inner, names)
    return []


def assigned_in(tree: ast.AST) -> dict[str, list[tuple[int, ast.expr]]]:
    """What is assigned to each name, with the line."""
    names: dict[str, list[tuple[int, ast.expr]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names.setdefault(node.targets[0].id, []).append((node.lineno, node.value))
    return names


def is_of_notes(node: ast.AST) -> bool:
    """Whether something is called notes: a name, an attribute, or an item."""
    name = getattr(node, "id", "") or getattr(node, "attr", "") or getattr(getattr(node, "slice", None), "value", "")
    return isinstance(name, str) and name.endswith("notes")


def said_by(node: ast.AST) -> list[ast.expr]:
    """The expressions that a node warns of or notes."""
    match node:
        case ast.Call(func=ast.Attribute(attr="publish"), args=[ast.Constant(value="warning"), *_]):
            return [given.value for given in node.keywords]
        case ast.Call(func=ast.Name(id="Note"), args=[text, *_]):
            return [text]
        case ast.Call(func=ast.Name(id="Mend"), args=[*_, text]):
            return [text]
        case ast.Call(func=ast.Attribute(value=called, attr="append" | "insert")) if is_of_notes(called):
            return node.args
        case ast.Assign(targets=[target], value=value) if is_of_notes(target):
            return [value]
        case ast.AugAssign(target=target, value=value) if is_of_notes(target):
            return [value]
        case ast.Dict():
            return [value for key, value in zip(node.keys, node.values, strict=True) if is_key(key)]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if (
            SPEAKING.search(name) and name not in OTHERS
        ):
            returns = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
            return [value for value in returns if value is not None]
    return []


def is_key(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == "notes"


def said_in(tree: ast.Module) -> Iterator[str]:
    """The warnings and notes of a module, with a value in each place for one. One on a column has no stop."""
    module = assigned_in(ast.Module([each for each in tree.body if isinstance(each, ast.Assign)], []))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            names = module | assigned_in(function)
            for node in ast.walk(function):
                is_note = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Note"
                for text in [text for each in said_by(node) for text in alternatives(each, names)]:
                    yield text if not is_note or text.endswith(".") else f'Column "{VALUE}": {text}.'


def test_each_warning_and_each_note_has_chinese() -> None:
    paths = [path for folder in FOLDERS for path in sorted((SOURCES / folder).rglob("*.py"))]
    said = {text: path.name for path in paths for text in said_in(ast.parse(path.read_text("utf-8")))}
    said = {text: name for text, name in said.items() if ENGLISH.search(text)}
    assert len(said) > 90
    left = {text: name for text, name in said.items() if ENGLISH.search(CODE.sub("", note_in_chinese(text)))}
    assert left == {}


def test_what_a_warning_advises_has_chinese() -> None:
    settings = [providers.window_setting(server) for server in ("", *(row.name for row in providers.ROWS.values()))]
    told = [note_in_chinese(f"For more, raise {setting}.") for setting in settings]
    told += [note_in_chinese(f"Give it 8,192: set MEMORY_CONTEXT_WINDOW=8192, and raise {each}.") for each in settings]
    told += [note_in_chinese("Give it 8,192: use a model that has them (Ollama: `num_ctx`).")]
    told += [note_in_chinese("The answer reached 7 tokens and was cut off: `max_tokens` of the agent allows no more.")]
    assert [text for text in told if re.search(r"\b(?:of|or|raise|setting|its?|and|use|the)\b", text)] == []


def test_a_note_with_names_that_look_like_notes_takes_no_time() -> None:
    began = time.process_time()
    for part in ('Column "', 'Column "": ', "Give it : ", "The model call failed: ", " is . A", ": "):
        for size in (900, 1_000, 100_000):
            note_in_chinese((part * size)[:size])
    assert time.process_time() - began < 5
