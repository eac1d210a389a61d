"""What CREATE statements tell besides columns: comments, and the values that a column may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
    --(?P<line>[^\n]*)
  | /\*(?P<block>.*?)(?:\*/|\Z)
  | (?P<quoted>"(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] | '(?:[^']|'')*')
  | (?P<newline>\n)
  | (?P<space>[ \t\r\f]+)
  | (?P<word>[^\s"'`\[\],()/-]+)
  | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CONSTRAINTS = frozenset({"CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "CHECK"})
Labels = Mapping[str, tuple[str, ...]]
"""Labels by the column's name in lower case."""

_ENUMERATION = re.compile(r"(?:enum|set)\s*\(", re.I)
_LABEL = re.compile(r"'((?:[^']|'')*)'")
_CHECK = re.compile(r"\bCHECK\b", re.I)


@dataclass
class Comments:
    """The comment of a table and those of its columns."""

    table: str | None = None
    columns: dict[str, str] = field(default_factory=dict)


@dataclass
class _Definition:
    """A column or constraint, with the comments before and after it."""

    name: str | None = None
    before: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)


def comments_of(sql: str) -> Comments:
    """Return the comments in a CREATE TABLE or CREATE VIEW statement. One on a column's line belongs to that column,
    one on its own line to the next column. One before or next to the opening parenthesis belongs to the table."""
    if "--" not in sql and "/*" not in sql:
        return Comments()
    head, definitions = _split(sql)
    comments = Comments(table=_join_texts(head))
    for position, definition in enumerate(definitions):
        before, behind = _join_texts(definition.before), _join_texts(definition.behind)
        if position == 0 and before and behind and comments.table is None:
            comments.table = before
        text = behind or before
        if definition.name and text:
            comments.columns[definition.name] = text
    return comments


def _split(sql: str) -> tuple[list[str], list[_Definition]]:
    head: list[str] = []
    definitions = [_Definition()]
    depth = 0
    fresh_line = False  # only comments on this line so far
    beside_opening = True  # still on the line of the opening parenthesis
    for kind, text in _tokens(sql):
        current = definitions[-1]
        if kind == "comment":
            if definitions[0].name is None and beside_opening:
                head.append(text)
            elif fresh_line:
                # After the last words of a column, before its comma, it still belongs to that column.
                (current.before if current.name is None else current.behind).append(text)
            else:
                # After the comma of a column, the next definition has begun but has no name yet.
                begun = current.name is not None or len(definitions) == 1
                definitions[-1 if begun else -2].behind.append(text)
        elif kind == "newline":
            fresh_line, beside_opening = True, beside_opening and depth == 0
        elif kind == "mark" and text in "()":
            depth += 1 if text == "(" else -1
            fresh_line = fresh_line and text == ")"
        elif kind == "mark" and text == "," and depth == 1:
            definitions.append(_Definition())
        else:
            if depth == 1 and current.name is None:
                current.name = _name(kind, text)
            fresh_line = False
    return head, definitions


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "mark"
        if kind in ("line", "block"):
            text = " ".join(match.group(kind).strip(" \t\r\n*-=").split())
            if text:
                yield "comment", text
            if kind == "block" and "\n" in match.group(kind):
                yield "newline", "\n"
        elif kind != "space":
            yield kind, match.group()


def _name(kind: str, text: str) -> str:
    if kind == "quoted":
        quote = "]" if text[0] == "[" else text[0]
        return text[1:-1].replace(quote * 2, quote)
    return "" if text.upper() in _CONSTRAINTS else text


def _join_texts(texts: list[str]) -> str | None:
    return " ".join(texts) or None


def labels_of_type(type_name: str) -> tuple[str, ...]:
    """The labels in a type such as `ENUM('a', 'b')`, `set('a','b')` or `ENUM('a', 'b')[]`."""
    if not _ENUMERATION.match(type_name):
        return ()
    return tuple(label.replace("''", "'") for label in _LABEL.findall(type_name))


def labels_of_checks(statement: str, dialect: str) -> Labels:
    """The labels that a CREATE TABLE statement's CHECKs, or a single CHECK, allow."""
    if not _CHECK.search(statement) or "'" not in statement:
        return {}
    # Imported here: sqlglot is slow to load, and most tables have no such condition.
    from longthread.tools.analysis.sql_text import read_check_labels

    alone = _CHECK.match(statement.lstrip())
    return read_check_labels(f"CREATE TABLE t ({statement})" if alone else statement, dialect)
