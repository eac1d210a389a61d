"""The schema of a source: tables, columns, keys, comments, and what CREATE statements tell besides columns."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from longthread.errors import TableNotFound

TableKind = Literal["table", "view"]
ColumnShape = Literal["integer", "number", "text", "date", "boolean", "binary", "other"]


@dataclass(frozen=True)
class Column:
    """One column. `type` is the database's own name."""

    name: str
    type: str
    nullable: bool = True
    primary_key: bool = False
    comment: str | None = None
    labels: tuple[str, ...] = ()
    """The allowed values, if the database lists them."""
    withholds_labels: bool = False
    """Whether it does, but a policy hides them."""

    @property
    def is_enumerated(self) -> bool:
        return bool(self.labels) or self.withholds_labels

    @property
    def shape(self) -> ColumnShape:
        """The kind of its values in any dialect."""
        shape = shape_of(self.type)
        # An enumeration has a name of its own in PostgreSQL.
        return "text" if self.is_enumerated and not self.type.endswith("[]") else shape


@dataclass(frozen=True)
class ForeignKey:
    """Columns that refer to columns of another table, named by its label."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table or view. `label` is its name for people and models, `sql` its quoted name."""

    label: str
    sql: str
    kind: TableKind = "table"
    comment: str | None = None
    columns: tuple[Column, ...] = ()
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    estimated_rows: int | None = field(default=None, compare=False)


class Schema:
    """The tables of a source, ordered by name. `home` is their database, where statements could name others."""

    def __init__(self, tables: Iterable[Table], home: str = "") -> None:
        self.tables: Mapping[str, Table] = {table.label: table for table in tables}
        self.home = home

    def __len__(self) -> int:
        return len(self.tables)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of tables, columns, types, keys and comments."""
        shape = [
            [
                table.label,
                table.kind,
                [
                    [column.name, column.type, column.nullable, column.comment, *column.labels]
                    for column in table.columns
                ],
                table.primary_key,
                [[key.columns, key.table, key.references] for key in table.foreign_keys],
                table.comment,
            ]
            for table in self.tables.values()
        ]
        return hashlib.sha256(json.dumps(shape, ensure_ascii=False).encode()).hexdigest()[:16]

    def find(self, name: str) -> Table:
        """Finds a table by its name: exact, unquoted, or in another case. Raises TableNotFound."""
        bare = unquote_name(name)
        for candidate in (name, bare):
            if candidate in self.tables:
                return self.tables[candidate]
        folded = [
            table for label, table in self.tables.items() if label.casefold() in (name.casefold(), bare.casefold())
        ]
        if len(folded) == 1:
            return folded[0]
        ends = [table for label, table in self.tables.items() if label.casefold().endswith("." + bare.casefold())]
        if len(ends) == 1:
            return ends[0]
        raise TableNotFound(table=name[:200], nearest=self.nearest(bare))

    def nearest(self, name: str) -> str:
        """A sentence with the nearest names, or with some tables."""
        close = close_names(name, self.tables)
        if close:
            return f"The nearest names are: {', '.join(close)}."
        some = list(self.tables)[:10]
        more = f" and {len(self.tables) - len(some)} more" if len(self.tables) > len(some) else ""
        return f"The tables are: {', '.join(some)}{more}." if some else "The source has no tables."

    def with_keys(self, keys: Mapping[str, Mapping[str, ForeignKey]]) -> Schema:
        """Return this schema with further foreign keys, by table and column."""
        tables = (
            replace(table, foreign_keys=(*table.foreign_keys, *keys.get(label, {}).values()))
            for label, table in self.tables.items()
        )
        return Schema(tables, self.home)

    def referenced_by(self, table: Table) -> list[tuple[Table, ForeignKey]]:
        """The foreign keys that refer to `table`."""
        return [
            (other, key) for other in self.tables.values() for key in other.foreign_keys if key.table == table.label
        ]


def close_names(name: str, names: Iterable[str]) -> list[str]:
    """Up to five similar names, best first."""
    by_folded = {candidate.casefold(): candidate for candidate in names}
    wanted = name.casefold()
    close = difflib.get_close_matches(wanted, by_folded, n=5, cutoff=0.6)
    if len(wanted) >= 2:
        close += [folded for folded in by_folded if folded not in close and (wanted in folded or folded in wanted)]
    return [by_folded[folded] for folded in close[:5]]


def unquote_name(name: str) -> str:
    """Removes quotes around a name or its parts."""
    text = name.strip().rstrip(";").strip()
    for opening, closing in ('""', "``", "[]", "''"):
        if len(text) > 1 and text.startswith(opening) and text.endswith(closing):
            inner = text[1:-1]
            between = f"{closing}.{opening}"
            return inner.replace(between, ".").replace(closing * 2, closing) if closing != "]" else inner
    return text


def shape_of(type_name: str) -> ColumnShape:
    """The kind of values of a declared type."""
    word = type_name.casefold()
    if word.endswith("[]") or word.startswith(
        ("struct", "map", "list", "union", "array", "json", "interval", "tsvector")
    ):
        return "other"
    bare = word.partition("(")[0].strip()  # in parentheses may be the words of an enumeration
    if bare in ("enum", "set"):
        return "text"
    for shape, marks in _SHAPES:
        if any(mark in bare for mark in marks):
            return shape
    return "other" if word else "text"


_SHAPES: tuple[tuple[ColumnShape, tuple[str, ...]], ...] = (
    ("other", ("point", "polygon", "geometry", "linestring", "range", "uuid")),
    ("boolean", ("bool",)),
    ("date", ("date", "time")),
    ("integer", ("int", "serial", "year")),
    ("number", ("real", "floa", "doub", "num", "dec", "money", "currency")),
    ("text", ("char", "text", "clob", "string", "enum", "name", "varying")),
    ("binary", ("blob", "bytea", "binary", "image", "bit")),
)


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
