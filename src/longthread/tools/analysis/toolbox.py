"""The four tools for a source: list_tables, describe_table, sample_rows, run_sql."""

from __future__ import annotations

import asyncio
import fnmatch
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from longthread.errors import ColumnNotFound, InvalidInput, SqlFailed, SqlRefused, SqlRepeated, TableNotFound
from longthread.model.run import CORRECT, statement_form
from longthread.tools.analysis.column_format import format_of_json
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.format_lineage import formats_of_query
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.missing_names import ways_to_write
from longthread.tools.analysis.nearest import notes_of
from longthread.tools.analysis.result import Result
from longthread.tools.analysis.schema import Schema, Table, close_names
from longthread.tools.analysis.schema_linking import Likely
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.table_descriptions import (
    BESIDE,
    column_named,
    column_of,
    comment_of,
    count_in,
    count_rows,
    describe_tables,
    description,
    named_columns,
    profile,
    size_of,
)
from longthread.tools.tool import Observation, Tool, Work, as_observation

_Arguments = Mapping[str, Any]
_LIST_TABLES = (
    "Lists tables with row counts and comments, for what the schema does not show. Tell the user those `notes` that "
    "bear on the answer."
)
_DESCRIBE_TABLE = "Describes a table with frequent values and ranges, for what the schema does not tell."
_SAMPLE_ROWS = "Shows rows of a table: what its values look like."
_RUN_SQL = "Runs one read-only SELECT in {dialect}; returns at most {rows} rows. Put special names in {quotes}."
_PATTERN = "Part of a name, or with *."
_ABOUT = "What they are about; by default the question."
_TABLES_FROM = "0, or what `next` said."
_COLUMN = "Only this one."
_COLUMNS_FROM = "What `next` said."
_COMMENT_FROM = "What `comment_next` said."
_LIMIT = "5 by default."
_SHOWN_TABLES = 6
_FENCED = re.compile(r"\s*```\w*\s*\n(?P<sql>.*?)\n?\s*```\s*", re.S)
_CORRECTABLE = frozenset({ColumnNotFound.code, TableNotFound.code, SqlFailed.code, SqlRepeated.code})
"""Types of errors that another statement may not have."""


def analysis_tools(source: Source, question: str = "") -> list[Tool]:
    """The tools of one source. `question` chooses the tables that are listed of a large database."""
    box = _Toolbox(source, question)
    parameters = analysis_parameters(f"the {source.dialect} dialect", source.limits.sample_rows)
    run_sql = _RUN_SQL.format(
        dialect=source.dialect,
        rows=source.limits.rows,
        quotes=find_dialect(source.dialect).quote_title,
    )
    works: Mapping[str, tuple[str, Work]] = {
        "list_tables": (_LIST_TABLES, box.list_tables),
        "describe_table": (_DESCRIBE_TABLE, box.describe_table),
        "sample_rows": (_SAMPLE_ROWS, box.sample_rows),
        "run_sql": (run_sql, box.run_sql),
    }
    return [
        Tool(name, about, parameters[name], _asking_for_sql(work), retry_safe=True, category="database")
        for name, (about, work) in works.items()
    ]


def _asking_for_sql(work: Work) -> Callable[[_Arguments], Awaitable[Observation]]:
    """Return the call of a tool whose errors of SQL end with what is wanted of the model."""
    call = as_observation(work)

    async def ask(arguments: _Arguments) -> Observation:
        observation = await call(arguments)
        error = observation.get("error")
        if not isinstance(error, Mapping) or error["type"] not in _CORRECTABLE:
            return observation
        return {**observation, "error": {**error, "message": f"{error['message']} {CORRECT}"}}

    return ask


def analysis_parameters(dialect: str, sample_rows: int) -> dict[str, dict[str, Any]]:
    """The JSON Schema of each tool's arguments, by name. `dialect` is that of the SQL in words, `sample_rows` the most
    that are shown."""
    limit = {"type": "integer", "description": _LIMIT, "minimum": 1, "maximum": sample_rows}
    listing = {"pattern": _text_of(_PATTERN), "about": _text_of(_ABOUT), "offset": _place_of(_TABLES_FROM)}
    describing = {
        "table": {"type": "string"},
        "column": _text_of(_COLUMN),
        "offset": _place_of(_COLUMNS_FROM),
        "comment_from": _place_of(_COMMENT_FROM),
    }
    return {
        "list_tables": _object_of(listing),
        "describe_table": _object_of(describing, "table"),
        "sample_rows": _object_of({"table": {"type": "string"}, "limit": limit}, "table"),
        "run_sql": _object_of({"sql": _text_of(f"One SELECT in {dialect}.")}, "sql"),
    }


def _text_of(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def _place_of(description: str) -> dict[str, Any]:
    return {"type": "integer", "description": description, "minimum": 0}


def _object_of(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


class _Toolbox:
    """The work of the tools."""

    def __init__(self, source: Source, question: str) -> None:
        self._source = source
        self._question = question
        self._limits = source.limits
        self._failed: dict[str, str] = {}
        """Errors of statements, by their form: the same one is not run again."""

    async def list_tables(self, arguments: _Arguments) -> dict[str, Any]:
        schema = await self._source.schema()
        pattern = _text(arguments, "pattern", required=False)
        chosen = _matching(schema, pattern)
        missed = [f"No table's name fits {pattern!r}: these are the others."] if pattern and not chosen else []
        chosen = chosen or list(schema.tables.values())
        begin = _place(arguments, "offset", len(chosen))
        wanted = await asyncio.to_thread(self._select_tables, schema, chosen, arguments, begin)
        rows = await self._source.work(lambda connection: self._count(connection, wanted))
        about = describe_tables(wanted, rows, self._limits)
        shown = wanted[: len(about)]
        listing: dict[str, Any] = {
            "source": self._source.label,
            "dialect": self._source.dialect,
            "fingerprint": schema.fingerprint,
            "tables": list(about),
            "total": len(chosen),
            "shown": f"{len(shown)} of {len(chosen)}",
            "about": about,
        }
        notes = self._notes(shown, self._limits.bytes - 3 * BESIDE - size_of([list(about), about]))
        columns = sum(len(table.columns) for table in chosen)
        if len(shown) == len(chosen) and columns <= self._limits.listed_columns:
            room = self._limits.bytes - 4 * BESIDE - size_of([list(about), about, notes])
            listing |= {"columns": named} if (named := named_columns(shown, room)) else {}
        if self._is_ranked(chosen, arguments):
            more = "Say with `about` or `pattern` what else to list, or list all from `offset` 0 on."
            notes += [f"These are the tables that are likely meant. {more}"] if len(shown) < len(chosen) else []
        elif (end := (begin or 0) + len(shown)) < len(chosen):
            listing["next"] = end
        if missed or notes:
            listing["notes"] = [*missed, *notes]
        return listing

    def _notes(self, tables: list[Table], room: int) -> list[str]:
        """Notes on skipped files and guesses, as far as they fit."""
        notes = self._source.notes_about(table.label for table in tables)
        fitting = min(self._limits.listed_notes, count_in(notes, room))
        more = [f"{len(notes) - fitting} more notes are in the tables' descriptions."] if len(notes) > fitting else []
        return [*notes[:fitting], *more]

    def _select_tables(
        self, schema: Schema, chosen: list[Table], arguments: _Arguments, begin: int | None
    ) -> list[Table]:
        """The tables to list: those from place `begin` on, or the likely ones of many."""
        if not self._is_ranked(chosen, arguments):
            return chosen[begin or 0 :][: self._limits.listed_tables]
        meant = _text(arguments, "about", required=False)
        among = Schema(chosen) if len(chosen) < len(schema) else schema
        ranked = Likely(among).rank(meant or self._question, self._limits.likely_tables)
        return [among.tables[label] for label in ranked] or chosen[: self._limits.likely_tables]

    def _is_ranked(self, chosen: list[Table], arguments: _Arguments) -> bool:
        """Whether to list the likely tables."""
        if arguments.get("offset") is not None:
            return False
        about, pattern = (_text(arguments, name, required=False) for name in ("about", "pattern"))
        return bool(about) or (len(chosen) > self._limits.many_tables and not pattern)

    def _count(self, connection: SourceConnection, tables: list[Table]) -> dict[str, tuple[int | None, bool]]:
        """Row counts as far as the time allows."""
        until = time.monotonic() + self._limits.statistics_seconds
        counts: dict[str, tuple[int | None, bool]] = {}
        for table in tables:
            left = until - time.monotonic()
            if left <= 0:
                break
            counts[table.label] = count_rows(connection, table, left)
        return counts

    async def describe_table(self, arguments: _Arguments) -> dict[str, Any]:
        schema = await self._source.schema()
        table = schema.find(_text(arguments, "table"))
        name, dialect, limits = _text(arguments, "column", required=False), self._source.dialect, self._limits
        begin = _place(arguments, "offset", len(table.columns)) or 0
        if (comment_from := _place(arguments, "comment_from")) and not name:
            return comment_of(table, comment_from, limits)
        columns = table.columns[begin : begin + limits.described_columns]
        columns = (column_named(table, name),) if name else columns
        found = await self._source.work(lambda connection: profile(connection, table, columns, limits, dialect))
        if name:
            return column_of(schema, table, columns[0], found, limits, comment_from or 0)
        data = {"dialect": dialect, **description(schema, table, columns, found, limits, begin, dialect)}
        notes = self._source.notes_on(table.label)
        notes = notes[: count_in(notes, limits.bytes - BESIDE - size_of(data))]
        return data | ({"notes": [*data.get("notes", ()), *notes]} if notes else {})

    async def sample_rows(self, arguments: _Arguments) -> dict[str, Any]:
        schema = await self._source.schema()
        table = schema.find(_text(arguments, "table"))
        limit = _count(arguments, "limit", 5, self._limits.sample_rows)
        result, total = await self._source.work(lambda connection: self._sample(connection, table, limit))
        of = result.counted if total is None and len(result.rows) < limit else total
        observed = result.build_observation(self._limits, limit)
        return {
            "table_name": table.label,
            **{name: observed[name] for name in ("columns", "rows", "row_count")},
            "shown": f"{len(observed['rows'])} of {'many' if of is None else of}",
            **({"notes": observed["notes"]} if observed["row_count"] < min(limit, result.counted) else {}),
        }

    def _sample(self, connection: SourceConnection, table: Table, limit: int) -> tuple[Result, int | None]:
        sql, cell = f"SELECT * FROM {table.sql} LIMIT {limit}", self._limits.sample_cell_characters
        result = connection.fetch(sql, self._limits, keep=limit, cell=cell)
        total, _ = count_rows(connection, table, self._limits.statistics_seconds)
        return result, total

    async def run_sql(self, arguments: _Arguments) -> dict[str, Any]:
        sql = _text(arguments, "sql")
        fenced = _FENCED.fullmatch(sql)
        sql = fenced["sql"] if fenced else sql
        form = statement_form(sql, folds=not find_dialect(self._source.dialect).keeps_table_case)
        if form in self._failed:
            schema = await self._source.schema()
            raise SqlRepeated(reason=self._failed[form], tables=_columns_of(schema, sql))
        try:
            return await run_query(self._source, sql, mends=True)
        except (ColumnNotFound, TableNotFound, SqlRefused, SqlFailed) as error:
            self._failed[form] = str(error)
            raise


async def sample(source: Source, table: str, limit: int) -> dict[str, Any]:
    """Return the observation of some rows of a table."""
    return await as_observation(_Toolbox(source, "").sample_rows)({"table": table, "limit": limit})


async def run_query(
    source: Source,
    sql: str,
    *,
    mends: bool = False,
    bound: tuple[str, Sequence[Any]] | None = None,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Run a query through the guard, and return the data of its observation. With `mends`, qualifiers that are
    certainly wrong are mended, and the notes say so. `bound` is the same statement with places for values, and the
    values: that is run. `limits` are those of the source by default. Raises SourceError."""
    schema, limits = await source.schema(), limits or source.limits
    values: Sequence[Any] = ()
    mended: list[str] = []
    # In a thread: parsing a long statement takes a while.
    if bound is not None:
        place, values = bound
        sql, run = await asyncio.to_thread(source.prepare, sql, schema, place)
    elif mends:
        sql, run, mended = await asyncio.to_thread(source.prepare_mended, sql, schema)
    else:
        sql, run = await asyncio.to_thread(source.prepare, sql, schema)
    started = time.monotonic()
    try:
        result = await source.work(
            lambda connection: connection.fetch(
                run, limits, keep=limits.rows, cell=limits.cell_characters, parameters=values
            )
        )
    except SqlFailed as error:
        raise await asyncio.to_thread(_add_hints, error, source, schema, sql) from error
    elapsed = round((time.monotonic() - started) * 1000)
    losses = await asyncio.to_thread(_losses, source, schema, sql)
    notes = [*mended, *losses, *await notes_of(source, schema, sql)]
    formats = await asyncio.to_thread(_formats, source, schema, sql)
    beside = len("".join([sql, *notes, json.dumps(formats)]).encode())
    observed = result.build_observation(limits, limits.rows, beside=beside)
    found = {"sql": sql, **observed, "notes": [*observed["notes"], *notes], "elapsed_ms": elapsed}
    return found | ({"formats": formats} if formats else {})


def _formats(source: Source, schema: Schema, sql: str) -> dict[str, dict[str, Any]]:
    """Return how the columns of a statement that has run are written, as JSON by column."""
    known = {label: {name: format_of_json(one) for name, one in each.items()} for label, each in source.formats.items()}
    if not known:
        return {}
    found = formats_of_query(source.judge(sql, schema).tree, known)
    return {name: each.to_json() for name, each in found.items()}


def _losses(source: Source, schema: Schema, sql: str) -> list[str]:
    """Return what the tables of a statement lost when they were read: a reader of the rows must know it."""
    labelled = [(note.partition(": ")[0], note) for note in source.notes]
    of_tables = [(label.casefold(), note) for label, note in labelled if label in schema.tables]
    if not of_tables:
        return []
    read = {table.name.casefold() for table in source.judge(sql, schema).tree.find_all(exp.Table)}
    return [note for label, note in of_tables if label in read]


def _add_hints(error: SqlFailed, source: Source, schema: Schema, sql: str) -> SqlFailed:
    """Adds the nearest names to an error of the database."""
    reason, dialect = error.reason, find_dialect(source.dialect)
    # Of the tables in the query, if there are any.
    asked = [table for table in schema.tables.values() if table.label.casefold() in sql.casefold()]
    if dialect.ambiguous_name and (ambiguous := re.search(dialect.ambiguous_name, reason)):
        name = ambiguous["column"]
        ways = " or ".join(ways_to_write(name, source.judge(sql, schema).tree, schema))
        return SqlFailed(reason=f"{reason} Write {ways or 'the name of its table or its alias before it'}.")
    unknown = re.search(dialect.unknown_name, reason) if dialect.unknown_name else None
    if unknown is None:
        return error
    names = unknown.groupdict()
    name = (names.get("column") or names["table"]).rsplit(".", 1)[-1]
    if not names.get("column"):
        return SqlFailed(reason=f"{reason} {schema.nearest(name)}")
    columns = [(column.name, table.label) for table in asked or schema.tables.values() for column in table.columns]
    close = close_names(name, [column for column, _ in columns])
    hint = ", ".join([f"{column} (of {table})" for column, table in columns if column in close][:5])
    return SqlFailed(reason=f"{reason} The nearest columns are: {hint}.") if hint else error


def _columns_of(schema: Schema, sql: str) -> str:
    """Return the columns of the tables that a statement names, or of the first ones."""
    words = set(re.findall(r"\w+", sql.casefold()))
    named = [table for label, table in schema.tables.items() if label.rpartition(".")[2].casefold() in words]
    shown = (named or list(schema.tables.values()))[:_SHOWN_TABLES]
    return "; ".join(f"{table.label} has {', '.join(column.name for column in table.columns[:30])}" for table in shown)


def _matching(schema: Schema, pattern: str) -> list[Table]:
    wanted = pattern.strip().casefold().replace("%", "*")
    if not wanted:
        return list(schema.tables.values())
    if "*" not in wanted:
        wanted = "*" + re.sub(r"[?[]", r"[\g<0>]", wanted) + "*"
    return [table for label, table in schema.tables.items() if fnmatch.fnmatchcase(label.casefold(), wanted)]


def _text(arguments: _Arguments, name: str, *, required: bool = True) -> str:
    value = arguments.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value.strip()):
        raise InvalidInput(reason=f"The argument `{name}` must be a text.")
    return value


def _count(arguments: _Arguments, name: str, default: int, most: int) -> int:
    value = arguments.get(name, default)
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInput(reason=f"The argument `{name}` must be a whole number from 1 to {most}.")
    return min(value, most)


def _place(arguments: _Arguments, name: str, most: int | None = None) -> int | None:
    """A place in a list or text, from 0; None if not given."""
    value = arguments.get(name)
    if value is None:
        return None
    place = value if isinstance(value, int) else int(value) if str(value).strip().isdecimal() else -1
    if isinstance(value, bool) or place < 0 or (most is not None and place > most):
        there = "" if most is None else f" to {most}"
        raise InvalidInput(reason=f"The argument `{name}` must be a whole number from 0{there}.")
    return place
