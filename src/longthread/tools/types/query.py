"""Builds and calls query tools: SQL templates with bound parameters.

In a template each `{{name}}` becomes a bound parameter. Tokens and syntax tree decide: a value, alone or within a
text (`'%{{name}}%'`), is bound; a placeholder in a name, a comment or in syntax is refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from longthread.errors import ArgumentsInvalid, LongthreadError, SqlRefused, ToolInvalid
from longthread.tools.analysis.dialects.dialect import SqlDialect, find_dialect, list_sources
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.quoting import literal
from longthread.tools.analysis.source import Source
from longthread.tools.arguments import (
    Arguments,
    Placeholder,
    TemplateParts,
    add_tool_name,
    is_scalar,
    parts_of,
    types_of,
)
from longthread.tools.tool import DefinedTool, ImplementationFields, Observation, Tool, make_failure, make_success
from longthread.tools.tool_type import Bilingual, FormField, SourcesByName, ToolParts, ToolType

_LARGEST = 2**63
_ESCAPE = "\\"
_LIKES = (exp.Like, exp.ILike)
_PATTERNS = (exp.RegexpLike, exp.RegexpILike, exp.SimilarTo)
_NAMES = (exp.Column, exp.Dot, exp.Identifier, exp.Parameter, exp.Interval, exp.Table, exp.TableAlias, exp.DataType)
_COUNTS = (exp.Limit, exp.Offset, exp.Fetch)
_SORTS = (exp.Ordered, exp.Group)
_WORDS = ((exp.Extract, "this"), (exp.Collate, "expression"))
"""Expressions of the tree where SQL expects a keyword."""


@dataclass(frozen=True)
class BoundParameter:
    """One parameter: an argument, or a text with arguments. `escaped` maps special characters of a pattern to escaped
    ones. A list in IN (…) is one parameter for each item."""

    parts: TemplateParts
    is_text: bool
    escaped: Mapping[str, str]
    is_list: bool = False

    def values(self, arguments: Mapping[str, Any]) -> list[Any]:
        """The bound values. A text with a missing argument is NULL, and so is an empty list."""
        values = [arguments.get(part.name) if isinstance(part, Placeholder) else part for part in self.parts]
        if self.is_list:
            return list(values[0] or [None])
        if not self.is_text:
            return values
        if any(value is None for value in values):
            return [None]
        given = zip(self.parts, values, strict=True)
        return [
            "".join(self._escape_value(value) if isinstance(part, Placeholder) else str(value) for part, value in given)
        ]

    def _escape_value(self, value: Any) -> str:
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        return "".join(self.escaped.get(character, character) for character in text)


@dataclass(frozen=True)
class BoundStatement:
    """A statement of one call. `run` has places for `values`; `said` has literals, for the guard and for display."""

    run: str
    values: list[Any]
    shown: str


@dataclass(frozen=True)
class Template:
    """A compiled template. `texts` are between its places; `functions` are unknown functions that it calls."""

    texts: tuple[str, ...]
    bound: tuple[BoundParameter, ...]
    dialect: SqlDialect
    functions: frozenset[str]

    def statement(self, arguments: Mapping[str, Any]) -> BoundStatement:
        """The statement of a call. Raises ArgumentsInvalid: a number is too large."""
        run = shown = self.texts[0]
        values: list[Any] = []
        for bound, text in zip(self.bound, self.texts[1:], strict=True):
            given = bound.values(arguments)
            if any(isinstance(value, int) and not -_LARGEST <= value < _LARGEST for value in given):
                raise ArgumentsInvalid(tool="the query", problem="A whole number has more than 64 bits.")
            first = len(values) + 1
            values += given
            run += ", ".join(self.dialect.place(first + number) for number in range(len(given))) + text
            shown += ", ".join(_write_literal(value, self.dialect.name) for value in given) + text
        return BoundStatement(run, values, shown)

    @property
    def example(self) -> str:
        """The statement with one parameter at each place, for the guard."""
        marks = [self.dialect.place(number) for number in range(1, len(self.texts))]
        return self.texts[0] + "".join(mark + text for mark, text in zip(marks, self.texts[1:], strict=True))


def compile_template(sql: str, properties: Mapping[str, Any], dialect: str) -> Template:
    """Compiles a template for arguments of these schemas. Raises ToolInvalid."""
    return _Compiler(sql, properties, dialect).template()


class _Compiler:
    def __init__(self, sql: str, properties: Mapping[str, Any], dialect: str) -> None:
        self._properties = properties
        self._dialect = find_dialect(dialect)
        self._parts = parts_of(sql, properties)
        self._mark = f"lt{sha256(sql.encode('utf-8', 'replace')).hexdigest()[:12]}x"
        self._names: dict[str, Placeholder] = {}

    def template(self) -> Template:
        marked = "".join(self._mark_part(part) for part in self._parts)
        texts: list[str] = [""]
        bound: list[tuple[TemplateParts, bool]] = []
        end = 0
        for token in self._tokens(marked):
            if token.token_type is TokenType.DPIPE and self._dialect.pipes_are_or:
                one_text = "Write a text with places in it as one text: '%{{name}}%'."
                raise _make_refusal(f"|| is OR in {self._dialect.title}. {one_text}")
            found = self._find_parameter(token, marked)
            if found is None and (self._dialect.has_ilike or token.token_type is not TokenType.ILIKE):
                continue
            texts[-1] += marked[end : token.start]
            end = token.end + 1
            if found is None:
                texts[-1] += "LIKE"  # which ignores case there
            else:
                bound.append(found)
                texts.append("")
        texts[-1] += marked[end:]
        seen = sum(isinstance(part, Placeholder) for parts, _ in bound for part in parts)
        if seen != len(self._names):
            raise _make_refusal("a place stands in a comment. Take it out of there.")
        return self._place_parameters(texts, bound)

    def _mark_part(self, part: str | Placeholder) -> str:
        if isinstance(part, str):
            return part
        name = f"{self._mark}{len(self._names)}x"
        self._names[name] = part
        return name

    def _tokens(self, marked: str) -> list[Token]:
        try:
            return sqlglot.tokenize(marked, read=self._dialect.sqlglot)
        except SqlglotError as error:
            raise _make_refusal(f"the SQL cannot be read as {self._dialect.name}.") from error

    def _find_parameter(self, token: Token, marked: str) -> tuple[TemplateParts, bool] | None:
        """The parameter in a token, and whether it is in a text; None if there is none."""
        if token.token_type is TokenType.VAR and token.text.startswith("$"):  # a name to sqlglot
            raise _make_refusal(_OWN)
        if self._mark not in token.text:
            return None
        if token.token_type is TokenType.VAR and token.text in self._names:
            return (self._names[token.text],), False
        if token.token_type is TokenType.STRING and marked[token.start] in self._dialect.text_quotes:
            return tuple(self._taken_apart(token.text)), True
        if token.token_type is TokenType.IDENTIFIER:
            raise _make_refusal(_IN_A_NAME)
        raise _make_refusal("a place stands within a word or a special text. Give it room, or write a plain '…' text.")

    def _taken_apart(self, text: str) -> list[str | Placeholder]:
        parts: list[str | Placeholder] = []
        for name, one in self._names.items():
            before, found, after = text.partition(name)
            if found:
                parts += [before, one] if before else [one]
                text = after
        return [*parts, text] if text else parts

    def _place_parameters(self, texts: list[str], bound: list[tuple[TemplateParts, bool]]) -> Template:
        tree, nodes = self._nodes(texts, len(bound))
        made = []
        for number, ((parts, is_text), node) in enumerate(zip(bound, nodes, strict=True)):
            self._check_types(parts, is_text, node)
            made.append(self._make_parameter(parts, is_text, node, texts, number))
        called = tree.find_all(exp.Anonymous, exp.AnonymousAggFunc)
        return Template(tuple(texts), tuple(made), self._dialect, frozenset(one.name for one in called))

    def _nodes(self, texts: list[str], count: int) -> tuple[exp.Expr, list[exp.Expr]]:
        """The tree, and the node of each parameter."""
        marks = [*(self._dialect.place(number) for number in range(1, count + 1)), ""]
        sql = "".join(text + mark for text, mark in zip(texts, marks, strict=True))
        try:
            statements = sqlglot.parse(sql, read=self._dialect.sqlglot)
        except (SqlglotError, RecursionError) as error:
            reason = f"with values in its places, the SQL is no statement of {self._dialect.name}. {_TYPED}"
            raise _make_refusal(reason) from error
        tree = next((one for one in statements if one is not None), None)
        if tree is None or len(statements) != 1:
            raise _make_refusal("the SQL is not one statement.")
        nodes = list(tree.find_all(exp.Placeholder, exp.Parameter))
        found = {node.name.removeprefix("p"): node for node in nodes}
        wanted = [str(number) for number in range(1, count + 1)]
        if len(nodes) > count:
            raise _make_refusal(_OWN)
        if sorted(found) != sorted(wanted):
            raise _make_refusal(_IN_A_NAME)
        for node in nodes:
            _check_position(node)
        return tree, [found[label] for label in wanted]

    def _make_parameter(
        self, parts: TemplateParts, is_text: bool, node: exp.Expr, texts: list[str], number: int
    ) -> BoundParameter:
        parent = node.parent
        if isinstance(parent, _LIKES) and node.arg_key == "expression":
            given = parent.parent.expression.name if isinstance(parent.parent, exp.Escape) else ""
            adds = not given and not self._dialect.escapes_patterns
            if adds and not texts[number].rstrip().upper().endswith("LIKE"):
                raise _make_refusal("a place stands in a pattern behind an operator. Write LIKE or ILIKE.")
            if adds:
                texts[number + 1] = f" ESCAPE '{_ESCAPE}'{texts[number + 1]}"
                parts = tuple(one.replace(_ESCAPE, _ESCAPE * 2) if isinstance(one, str) else one for one in parts)
            escape = given or _ESCAPE
            return BoundParameter(parts, True, {one: escape + one for one in ("%", "_", escape)})
        if isinstance(parent, exp.Glob) and node.arg_key == "expression":
            return BoundParameter(parts, True, {one: f"[{one}]" for one in "*?["})
        like = node.find_ancestor(*_LIKES, exp.Query)
        if isinstance(like, _LIKES) and _is_in(node, like.expression):
            raise _make_refusal("a place stands in a pattern that is put together. Write it as one text: '%{{name}}%'.")
        if isinstance(parent, _PATTERNS) and len(parts) > 1:
            raise _make_refusal("a place stands within a regular expression, which would read its value as one.")
        is_list = not is_text and isinstance(parts[0], Placeholder) and self._types(parts[0]) == {"array"}
        return BoundParameter(parts, is_text, {}, is_list)

    def _types(self, part: Placeholder) -> frozenset[str]:
        return types_of(self._properties[part.name])

    def _check_types(self, parts: TemplateParts, is_text: bool, node: exp.Expr) -> None:
        for part in parts:
            if not isinstance(part, Placeholder):
                continue
            types = self._types(part)
            listed = isinstance(node.parent, exp.In) and node.arg_key == "expressions" and not is_text
            if listed and types == {"array"}:
                types = types_of(self._properties[part.name].get("items"))
            if not is_scalar(types):
                kind = "string, integer, number or boolean (in IN (…) also array)"
                raise ToolInvalid(
                    problem=f"the schema must say the type of `{part.name}`, which stands in SQL: {kind}."
                )
            counts = isinstance(node.parent, _COUNTS)
            if counts and (is_text or types != {"integer"}):
                raise ToolInvalid(problem=f"`{part.name}` says how many rows: its type in the schema must be integer.")


_IN_A_NAME = (
    "a place stands where SQL wants a name (of a table, a column, an alias). Names cannot be arguments: write the "
    "name, or make one tool for each."
)
_OWN = "it has a place of SQL's own (such as ? or $1). Write {{name}} for each value."
_TYPED = "A typed value is written CAST({{name}} AS DATE), or CAST({{name}} AS INTERVAL)."


def _check_position(node: exp.Expr) -> None:
    parent = node.parent
    if isinstance(parent, _SORTS):
        raise _make_refusal(
            "a place stands in ORDER BY or GROUP BY, where a value changes nothing. Use CASE, or a name."
        )
    if isinstance(parent, exp.Interval):
        raise _make_refusal(f"a place stands in INTERVAL, which takes no bound value. {_TYPED}")
    value = isinstance(parent, exp.Condition | exp.Func | exp.Tuple | exp.Values | exp.Where | exp.Having | exp.Join)
    value |= isinstance(parent, (*_COUNTS, exp.AtTimeZone, exp.Distinct))
    value |= isinstance(parent, exp.Alias | exp.Cast) and node.arg_key == "this"
    value |= isinstance(parent, exp.Select) and node.arg_key == "expressions"
    if isinstance(parent, exp.Alias) and node.arg_key != "this":
        raise _make_refusal(f"{_IN_A_NAME} {_TYPED}")
    if (type(parent), node.arg_key) in _WORDS:
        raise _make_refusal(_IN_A_NAME)
    if not value or isinstance(parent, _NAMES) or (isinstance(parent, exp.Cast) and node.arg_key != "this"):
        raise _make_refusal(_IN_A_NAME)


def _is_in(node: exp.Expr, within: exp.Expr) -> bool:
    inside: exp.Expr | None = node
    while inside is not None and inside is not within:
        inside = inside.parent
    return inside is not None


def _write_literal(value: Any, dialect: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return literal(value, dialect) if isinstance(value, str) else f" {value!r} "


def _make_refusal(problem: str) -> ToolInvalid:
    return ToolInvalid(problem=f"in `sql_template`, {problem}")


_MOST_ROWS = 10_000
_LONGEST = 10_000
"""Characters of a template without its values."""


def check(implementation: Mapping[str, Any], parameters: Mapping[str, Any], *, dialect: str | None = None) -> None:
    """Checks an implementation in the dialect of its source, or in any. Raises ToolInvalid."""
    _Query(implementation).compile_template(Arguments(parameters), dialect)


def build(definition: DefinedTool, sources: SourcesByName) -> Tool:
    """Builds the tool. Raises ToolInvalid."""
    query = _Query(definition.implementation)
    arguments = Arguments(definition.parameters, tool=definition.name)
    query.compile_template(arguments, None)
    templates: dict[str, Template] = {}

    async def call(given: Mapping[str, Any]) -> Observation:
        try:
            checked = arguments.validate(given)
            source = await sources(query.database)
            if source.dialect not in templates:
                templates[source.dialect] = query.compile_template(arguments, source.dialect)
            return make_success(await _answer(source, templates[source.dialect], checked, query.rows))
        except LongthreadError as error:
            return make_failure(add_tool_name(error, definition.name))

    return Tool(definition.name, definition.description or "", definition.parameters, call, retry_safe=True)


async def _answer(source: Source, template: Template, arguments: Mapping[str, Any], rows: int) -> dict[str, Any]:
    statement = template.statement(arguments)
    schema = await source.schema()
    # The guard sees the values, as some decide how much is built; what runs has them bound.
    sql, run = await asyncio.to_thread(source.prepare, statement.shown, schema, statement.run)
    limits = source.limits
    keep = min(limits.rows, rows)
    started = time.monotonic()
    result = await source.work(
        lambda connection: connection.fetch(
            run, limits, keep=keep, cell=limits.cell_characters, parameters=statement.values
        )
    )
    return {
        "sql": sql,
        **result.build_observation(limits, keep),
        "elapsed_ms": round((time.monotonic() - started) * 1000),
    }


class _Query:
    """A parsed implementation. Raises ToolInvalid."""

    def __init__(self, implementation: Mapping[str, Any]) -> None:
        fields = ImplementationFields(implementation, "query", ("database", "sql_template", "max_rows"))
        self.database = fields.text("database", "the name of a source")
        self.sql = fields.text("sql_template", "one SELECT", longest=_LONGEST)
        self.rows = fields.whole("max_rows", _MOST_ROWS, _MOST_ROWS)

    def compile_template(self, arguments: Arguments, dialect: str | None) -> Template:
        """The template for a dialect, or for the first that parses it."""
        first: ToolInvalid | None = None
        for one in (dialect,) if dialect else list_sources():
            try:
                template = compile_template(self.sql, arguments.properties, one)
                # Unknown functions are checked once there is a source.
                Guard(one).judge(template.example, functions=template.functions)
                return template
            except SqlRefused as error:
                first = first or ToolInvalid(problem=f"its `sql_template` would not be run: {error}")
            except ToolInvalid as error:
                first = first or error
        raise first or ToolInvalid(problem="it has no dialect.")


async def _build(definition: DefinedTool, parts: ToolParts) -> list[Tool]:
    return [build(definition, parts.sources)]


TYPE = ToolType(
    Bilingual("Query", "查询"),
    check,
    _build,
    about=Bilingual("an SQL template on a source", "在数据源上执行 SQL 模板"),
    fields=(
        FormField(
            "database",
            "source",
            Bilingual("Source", "数据源"),
            hint=Bilingual(
                "The database that it queries, whichever one a question names.",
                "它查询的数据库，与提问时指定的数据源无关。",
            ),
            none=Bilingual("Choose a source", "选择数据源"),
        ),
        FormField(
            "sql_template",
            "sql",
            Bilingual("SQL", "SQL"),
            hint=Bilingual(
                "One SELECT. Write {{name}} where an argument stands: it is bound, never pasted in.",
                "一条 SELECT。参数的位置写 {{name}}：值会被绑定，不会拼进 SQL。",
            ),
        ),
    ),
    more=Bilingual("Such as max_rows.", "例如 max_rows。"),
    category="database",
)
