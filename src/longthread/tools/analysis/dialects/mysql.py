"""MySQL and MariaDB, on a server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from longthread.errors import ExtraMissing
from longthread.tools.analysis.dialects.dialect import SqlDialect, is_of_server

if TYPE_CHECKING:
    from longthread.model.semantics import Grain
    from longthread.tools.analysis.address import SourceUrl
    from longthread.tools.analysis.engine import Engine
    from longthread.tools.analysis.limits import Limits

_FUNCTIONS = """
    abs acos add_months adddate addtime any_value ascii asin atan atan2 avg bin bin_to_uuid bit_and bit_count
    bit_length bit_or bit_xor cast ceil ceiling char char_length character_length charset chr coalesce
    coercibility collation concat concat_ws conv convert convert_tz cos cot count crc32 crc32c cume_dist
    curdate current_date current_role current_time current_timestamp current_user curtime database date
    date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear degrees dense_rank elt
    exp export_set extract field find_in_set first_value floor format format_bytes from_base64 from_days
    from_unixtime geometrycollection geomfromtext get_format greatest group_concat grouping hex hour if ifnull
    inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr interval is_ipv4 is_ipv6 is_uuid isnull json_array
    json_array_append json_array_insert json_array_intersect json_arrayagg json_compact json_contains
    json_contains_path json_depth json_detailed json_equals json_exists json_extract json_insert json_keys
    json_length json_loose json_merge json_merge_patch json_merge_preserve json_normalize json_object
    json_object_filter_keys json_object_to_array json_objectagg json_overlaps json_pretty json_query
    json_quote json_remove json_replace json_schema_valid json_search json_set json_storage_size json_table
    json_type json_unquote json_valid json_value lag last_day last_value lcase lead least left length lengthb
    linestring ln localtime localtimestamp locate log log10 log2 lower lpad ltrim make_set makedate maketime
    max mbrcontains mbrcoveredby mbrcovers mbrdisjoint mbrequals mbrintersects mbroverlaps mbrtouches
    mbrwithin md5 median microsecond mid min minute mod month monthname multilinestring multipoint
    multipolygon natural_sort_key now nth_value ntile nullif nvl nvl2 oct octet_length ord percent_rank
    percentile_cont percentile_disc period_add period_diff pi point polygon position pow power quarter quote
    radians rand rank regexp regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse
    right round row row_number rpad rtrim schema sec_to_time second sformat sha sha1 sha2 sign sin soundex
    space sqrt st_distance st_distance_sphere std stddev stddev_pop stddev_samp str_to_date strcmp subdate
    substr substring substring_index subtime sum sysdate tan time time_format time_to_sec timediff timestamp
    timestampadd timestampdiff to_base64 to_char to_days to_seconds trim truncate ucase unhex unix_timestamp
    upper utc_date utc_time utc_timestamp uuid uuid_short uuid_to_bin var_pop var_samp variance version week
    weekday weekofyear weight_string year yearweek
"""
_WORDS = """
    and case collate columns compress current_role decode encode exists like match or session_user st_makepoint st_point
    values xor
"""
_GRAINS: dict[Grain, str] = {
    "hour": "DATE_FORMAT(x, '%Y-%m-%d %H:00')",
    "day": "DATE_FORMAT(x, '%Y-%m-%d')",
    "week": "DATE_FORMAT(DATE_SUB(x, INTERVAL WEEKDAY(x) DAY), '%Y-%m-%d')",
    "month": "DATE_FORMAT(x, '%Y-%m-01')",
    "quarter": "CONCAT(YEAR(x), SUBSTR('-01-04-07-10', (QUARTER(x) - 1) * 3 + 1, 3), '-01')",
    "year": "DATE_FORMAT(x, '%Y-01-01')",
}
_LEXEMES = re.compile(
    r"""
    (?P<quoted>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*`)
  | (?P<comment>/\*(?!M?!|\+)(?:(?!/\*).)*?\*/ | (?:--(?=[ \t\n]|\r\n|\Z)|\#)[^\r\n]*(?=\r?\n|\Z))
  | (?P<odd>/\*|--|\#)
  | (?P<place>:p\d+\b)
    """,
    re.VERBOSE | re.DOTALL,
)


class _Mysql(SqlDialect):
    name = sqlglot = "mysql"
    title = "MySQL"
    rank = 2
    schemes = ("mysql", "mariadb")
    quote = "`"
    quote_title = "backticks"
    text_quotes = "'\""
    text_type = "CHAR"
    parameter = ":p{}"
    escapes_backslashes = True
    has_more_words = True
    keeps_table_case = True
    has_schemas = False
    exact_collation = "utf8mb4_bin"  # its usual collations take Bob, bób and "bob " for equal
    has_ilike = False
    escapes_patterns = True
    has_regexp_like = False  # MySQL has, and MariaDB does not
    pipes_are_or = True
    has_nulls_last = False
    functions = frozenset(_FUNCTIONS.split())
    function_families = ("st_",)
    own_words = frozenset(_WORDS.split())
    has_variables = True
    qualified_calls_are_own = True
    shows_tables = True
    format_specs = ()
    fence = "LIMIT 18446744073709551615"
    hidden_columns = frozenset({"_rowid"})
    lists_own_tables = True
    lists_all_tables = True
    unlisted_tables = frozenset({"dual"})
    unknown_name = r"Unknown column '(?P<column>[^']+)'|Table '(?P<table>[^']+)' doesn't exist"
    ambiguous_name = r"Column '(?P<column>[^']+)' in .* is ambiguous"

    def is_system(self, name: str, schema: str, catalog: str) -> bool:
        return is_of_server(name, schema, catalog)

    def has_odd_comment(self, sql: str) -> bool:
        """Return whether a comment is one that a server executes (`/*! … */`), obeys (`/*+ … */`), or reads otherwise
        than sqlglot: nested ones, or two dashes without a space."""
        return any(found["odd"] for found in _LEXEMES.finditer(sql))

    def truncate(self, grain: Grain) -> str:
        return _GRAINS[grain]

    def open_server(self, url: SourceUrl, source: str, limits: Limits) -> Engine:
        try:
            from longthread.tools.analysis.engines.mysql import MysqlEngine
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "pymysql":
                raise
            raise ExtraMissing(what="A MySQL source", package="pymysql", extra="mysql") from error
        return MysqlEngine(url, source, limits)


DIALECT = _Mysql()


def with_values(sql: str, values: Sequence[str]) -> str:
    """Put literals in the places `:p1`, `:p2`, …"""

    def replace_placeholder(found: re.Match[str]) -> str:
        return values[int(found["place"][2:]) - 1] if found["place"] else found[0]

    return _LEXEMES.sub(replace_placeholder, sql)
