"""SQLite, a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from longthread.tools.analysis.dialects.dialect import SqlDialect

if TYPE_CHECKING:
    from longthread.model.semantics import Grain
    from longthread.tools.analysis.engine import Engine
    from longthread.tools.analysis.limits import Limits

_FUNCTIONS = """
    abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling char coalesce concat concat_ws cos cosh count
    cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor
    format generate_series geopoly_area geopoly_contains_point glob group_concat hex highlight if ifnull iif instr
    json json_array json_array_length json_each json_error_position json_extract json_group_array json_group_object
    json_insert json_object json_patch json_pretty json_quote json_remove json_replace json_set json_tree json_type
    json_valid jsonb jsonb_array jsonb_each jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert
    jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set jsonb_tree julianday lag last_value lead length
    like likelihood likely ln log log10 log2 lower ltrim match matchinfo max median min mod nth_value ntile nullif
    octet_length offsets percent_rank percentile percentile_cont percentile_disc pi pow power printf quote radians
    random randomblob rank regexp replace round row_number rtrim sign sin sinh snippet soundex sqlite_source_id
    sqlite_version sqrt stddev strftime string_agg substr substring sum tan tanh time timediff total trim trunc
    typeof unhex unicode unistr unistr_quote unixepoch unlikely upper variance zeroblob
"""
_CATALOG = frozenset({"sqlite_master", "sqlite_schema", "sqlite_sequence", "sqlite_stat1", "sqlite_stat4"})
_JSON = {name: name for name in ("key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root")}
_SERIES = {name: name for name in ("value", "start", "stop", "step")}
_GRAINS: dict[Grain, str] = {
    "hour": "strftime('%Y-%m-%d %H:00', x)",
    "day": "date(x)",
    "week": "date(x, 'weekday 0', '-6 days')",
    "month": "strftime('%Y-%m-01', x)",
    "quarter": "strftime('%Y', x) || substr('-01-04-07-10', (CAST(strftime('%m', x) AS INTEGER) - 1) / 3 * 3 + 1, 3) "
    "|| '-01'",
    "year": "strftime('%Y-01-01', x)",
}


class _Sqlite(SqlDialect):
    name = sqlglot = "sqlite"
    title = "SQLite"
    rank = 3
    schemes = ("sqlite",)
    is_file = True
    suffixes = frozenset({".sqlite", ".sqlite3", ".db", ".db3", ".s3db", ".gpkg"})
    magic = b"SQLite format 3\0"
    parameter = ":p{}"
    has_schemas = False
    has_ilike = False
    has_extract = False
    date_part = "CAST(strftime('{code}', {column}) AS INTEGER)"
    date_shapes = ("date", "text")
    modulo_in_limit = True
    functions = frozenset(_FUNCTIONS.split())
    fence = "LIMIT -1"
    hidden_columns = frozenset({"rowid", "oid", "_rowid_", "rank"})
    table_functions = MappingProxyType({"json_each": _JSON, "json_tree": _JSON, "generate_series": _SERIES})
    lists_own_tables = True
    unknown_is_text = True
    unknown_name = r"no such (?:table: (?P<table>.+?)|column: (?P<column>.+?))\.?$"
    ambiguous_name = r"ambiguous column name: (?:\w+\.)?(?P<column>\w+)"

    def is_system(self, name: str, schema: str, catalog: str) -> bool:
        return name.startswith(("sqlite_", "pragma_", "dbstat")) and name not in _CATALOG

    def truncate(self, grain: Grain) -> str:
        return _GRAINS[grain]

    def load_file_engine(self) -> Callable[[Path, str, Limits], Engine]:
        from longthread.tools.analysis.engines.sqlite import SqliteEngine

        return SqliteEngine


DIALECT = _Sqlite()
