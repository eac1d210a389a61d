"""An engine: `--source acme://HOST/DATABASE`.

A SQLite file in the folder ACME_DATA stands for the server. Put your driver's calls in the place of those of `sqlite3`.
"""

import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from longthread.errors import SourceUnreadable, SqlFailed
from longthread.tools.analysis.dialects.dialect import SqlDialect
from longthread.tools.analysis.engine import Engine, SourceConnection
from longthread.tools.analysis.limits import Interrupted
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.result import Rows
from longthread.tools.analysis.schema import Column, Schema, Table

COLUMNS = """
    SELECT t.name, c.name, c.type, c."notnull", c.pk FROM pragma_table_list t, pragma_table_info(t.name) c
    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid
"""


class AcmeDialect(SqlDialect):
    """Acme's SQL. `SqlDialect` lists what else may differ."""

    name = "acme"
    title = "Acme"
    sqlglot = "sqlite"  # the dialect that the guard parses statements in
    schemes = ("acme",)
    parameter = "?{}"
    has_schemas = False
    lists_all_tables = True
    functions = frozenset({"abs", "avg", "coalesce", "count", "lower", "max", "min", "round", "sum", "upper"})

    def open_server(self, url, source, limits) -> Engine:
        return AcmeEngine(url.database or "", source)


class AcmeEngine(Engine):
    """One database."""

    dialect = "acme"

    def __init__(self, database: str, source: str) -> None:
        self.name = database
        self._source = source

    def connect(self) -> SourceConnection:
        """Open a session that cannot write. The guard refuses writes, too: neither is enough alone."""
        file = Path(os.environ.get("ACME_DATA", "."), f"{Path(self.name).name}.sqlite").resolve()
        try:
            return AcmeConnection(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, check_same_thread=False))
        except sqlite3.Error as error:
            raise SourceUnreadable(source=self._source, reason=f"{error}.") from error

    def read_schema(self, connection: SourceConnection) -> Schema:
        """Read the tables that a model is shown. Comments, keys and views may come with them, if you have them."""
        tables: dict[str, list[Column]] = {}
        for table, name, kind, required, key in connection.execute(COLUMNS):
            tables.setdefault(table, []).append(Column(name, kind, nullable=not required, primary_key=key > 0))
        return Schema(Table(name, quote_identifier(name), columns=tuple(each)) for name, each in tables.items())

    def mark(self, connection: SourceConnection) -> str:
        return str(list(connection.execute("PRAGMA schema_version")))


class AcmeConnection(SourceConnection):
    """One session."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    def query(self, sql, parameters=()) -> Rows:
        with translate_errors():
            cursor = self._raw.execute(sql, parameters)
        return Rows([column[0] for column in cursor.description or ()], self._fetch(cursor))

    def _fetch(self, cursor):
        with closing(cursor), translate_errors():
            yield from cursor

    def interrupt(self) -> None:
        with suppress(sqlite3.Error):  # it is closed: nothing runs
            self._raw.interrupt()

    def reset(self) -> None:
        self._raw.rollback()

    def close(self) -> None:
        self._raw.close()


@contextmanager
def translate_errors():
    """Raise what the model is shown, or that a statement was stopped."""
    try:
        yield
    except sqlite3.Error as error:
        raise Interrupted if str(error) == "interrupted" else SqlFailed(reason=f"{error}.") from error


DIALECT = AcmeDialect()
