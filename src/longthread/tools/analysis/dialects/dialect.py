"""What may differ between databases, their SQL and how a source is opened, and where to find it for each of them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from longthread.errors import PluginFailed

if TYPE_CHECKING:  # an engine's process loads no more than it needs
    from longthread.model.semantics import Grain
    from longthread.tools.analysis.address import SourceUrl
    from longthread.tools.analysis.engine import Engine
    from longthread.tools.analysis.limits import Limits
    from longthread.tools.analysis.schema import ColumnShape

SYSTEM_SCHEMAS = frozenset({"mysql", "performance_schema", "sys", "master", "msdb", "tempdb", "pg_toast"})


class SqlDialect:
    """The SQL of one kind of database, and how its sources are opened.

    A subclass gives what differs from the values here, which suit an unknown database. No module of a dialect imports
    a driver or sqlglot when it is loaded.
    """

    name = ""
    """What sources and prompts call it."""
    title = ""
    """Its name as people write it."""
    sqlglot = ""
    """What sqlglot calls it."""
    rank = 100
    """Its place among the dialects that a template is compiled for; the most likely one is first."""

    # How a source is opened

    schemes: tuple[str, ...] = ()
    """Schemes of the addresses of its sources."""
    aliases: tuple[str, ...] = ()
    """Other names, which stand in no address of a source."""
    is_file = False
    """Whether a database is a file, which is opened in a worker, or else on a server."""
    suffixes: frozenset[str] = frozenset()
    """Endings of its files."""
    magic = b""
    """The mark of its files, which begins at `magic_offset`."""
    magic_offset = 0

    # Names and texts

    quote = '"'
    quote_title = "double quotes"
    text_quotes = "'"
    """The marks that begin a text."""
    text_type = "TEXT"
    """The type that a value is cast to for its text."""
    parameter = "${}"
    """The place of a parameter, by its number."""
    escapes_backslashes = False
    """Whether a backslash in a text is written twice."""
    has_more_words = False
    """Whether it reserves the words that sqlglot lists for it, in addition to the common ones."""
    folds_names = False
    """Whether an unquoted name is in lower case, and names in quotes differ by case."""
    keeps_table_case = False
    """Whether the names of two tables differ by case alone."""
    has_schemas = True
    """Whether the dot in a table's label parts schema and name."""
    exact_collation = ""
    """The collation that tells different texts apart, if the usual ones do not."""

    # Operators and clauses

    has_ilike = True
    escapes_patterns = False
    """Whether a backslash escapes in LIKE without an ESCAPE clause."""
    has_regexp_like = True
    """Whether a regular expression is written as sqlglot does; else by the operator REGEXP."""
    pipes_are_or = False
    """Whether || is OR, and joins no texts."""
    has_nulls_last = True
    """Whether the place of NULL in an order can be said."""
    has_extract = True
    date_part = ""
    """How YEAR(…), which it lacks, is written: with {code} of strftime or {part}, and {column}."""
    date_shapes: tuple[ColumnShape, ...] = ("date",)
    """Columns that `date_part` reads as dates."""
    modulo_in_limit = False
    """Whether % in LIMIT is the modulo, and not a percentage."""

    # What the guard must know

    functions: frozenset[str] = frozenset()
    """Functions that only compute. No other function may be called."""
    function_families: tuple[str, ...] = ()
    """How the names of further such functions begin: those of geometry, which extensions bring."""
    own_words: frozenset[str] = frozenset()
    """Words before a parenthesis that are its own and in no list of functions. If given, a function that sqlglot knows
    from other databases is refused by name: somebody may have defined it."""
    has_variables = False
    qualified_calls_are_own = False
    """Whether `a.f()` calls a function that the database itself defines."""
    shows_tables = False
    """Whether SHOW TABLES is a query."""
    reads_named_files = False
    """Whether the name of a table may be that of a file."""
    statement_words: frozenset[str] = frozenset()
    """Words that begin a further statement without a semicolon."""
    builds_lists = False
    """Whether range() is a list, and not rows, where it is no table."""
    format_specs: tuple[str, ...] = (r"%[^A-Za-z%]*",)
    """Patterns of what format() replaces in a text. Empty: it formats one number or date."""
    fence = ""
    """The end of a subquery that keeps conditions from being evaluated inside of it. Without one, no policy holds."""

    # How names are resolved

    hidden_columns: frozenset[str] = frozenset()
    """Columns that a table has, and the schema does not list."""
    table_functions: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """The columns of table functions."""
    lists_own_tables = False
    """Whether the schema has every table of the database, except parts of others."""
    lists_all_tables = False
    """Whether the schema has every table that a statement may name, except `unlisted_tables`."""
    unlisted_tables: frozenset[str] = frozenset()
    has_structs = False
    """Whether `a.b` may be the field of a column."""
    unknown_is_text = False
    """Whether an unknown name in double quotes is a text."""
    names_items = True
    """Whether a selected expression without an alias has its own text as the name."""
    unknown_name = ""
    """The pattern of its error for an unknown `table` or `column`."""
    ambiguous_name = ""
    """The pattern of its error for a `column` that several tables have."""

    def __init__(self, name: str = "") -> None:
        if name:
            self.name = self.title = self.sqlglot = name

    def place(self, number: int) -> str:
        """Return how a statement writes the place of parameter `number`, from 1."""
        return self.parameter.format(number)

    def is_system(self, name: str, schema: str, catalog: str) -> bool:
        """Return whether a table that no query may read belongs to the database itself. Names are in lower case."""
        return schema in SYSTEM_SCHEMAS

    def has_odd_comment(self, sql: str) -> bool:
        """Return whether a comment is executed, obeyed, or read otherwise than sqlglot does."""
        return False

    def truncate(self, grain: Grain) -> str:
        """Return the SQL of the beginning of the hour, day, week (Monday), month, quarter or year of the moment `x`."""
        cut = f"date_trunc('{grain}', CAST(x AS TIMESTAMP))"
        return cut if grain == "hour" else f"CAST({cut} AS DATE)"

    def load_file_engine(self) -> Callable[[Path, str, Limits], Engine]:
        """Load the engine of databases in files. Raises PluginFailed: its plugin gives none."""
        raise self._report_missing("load_file_engine", "in files")

    def open_server(self, url: SourceUrl, source: str, limits: Limits) -> Engine:
        """Return the engine of a database on a server. Raises SourceError, ExtraMissing; PluginFailed: its plugin gives
        none."""
        raise self._report_missing("open_server", "on a server")

    def _report_missing(self, method: str, place: str) -> PluginFailed:
        from longthread.plugins import plugins

        offer = plugins().find("engines", self.name)
        reason = (
            f"its engine {self.name} opens no databases {place}. Its class {type(self).__name__} needs a method "
            f"`{method}`: upgrade the plugin, or add it."
        )
        return PluginFailed(plugin=self.name if offer is None else offer.plugin, reason=reason)


def is_of_server(name: str, schema: str, catalog: str) -> bool:
    """Return whether a table belongs to a server whose system has databases of its own."""
    return bool({schema, catalog} & SYSTEM_SCHEMAS) or name.startswith(("sys.", "sysprocesses", "syslogins"))


@cache
def load_dialects() -> tuple[SqlDialect, ...]:
    """Return all dialects, the most likely one first: the DIALECT of each module in this folder that has one."""
    names = [each.name for each in pkgutil.iter_modules([str(Path(__file__).parent)], f"{__package__}.")]
    found = [getattr(importlib.import_module(name), "DIALECT", None) for name in names]
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.rank))


def find_scheme(scheme: str) -> SqlDialect | None:
    """Return the dialect of a source by the scheme of its address. Raises PluginFailed."""
    from longthread.plugins import plugins  # here and not above: an engine's process has no use for it

    offer = plugins().find("engines", scheme)
    return None if offer is None else cast(SqlDialect, offer.load())


def list_sources() -> list[str]:
    """Return the names of the dialects that a source may have, the most likely one first, and then those of plugins."""
    from longthread.plugins import plugins

    return [*(each.name for each in load_dialects() if each.schemes), *plugins().list_added("engines")]


@cache
def _names() -> Mapping[str, SqlDialect]:
    return {name: each for each in load_dialects() for name in (each.name, *each.schemes, *each.aliases)}


def find_dialect(name: str) -> SqlDialect:
    """Return the dialect of a name or scheme; for an unknown name, one of standard SQL. Raises PluginFailed."""
    return _names().get(name) or find_scheme(name) or SqlDialect(name)


def is_file(scheme: str) -> bool:
    """Return whether an address of this scheme names a file."""
    dialect = find_scheme(scheme)
    return dialect is not None and dialect.is_file
