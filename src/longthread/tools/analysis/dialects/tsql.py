"""T-SQL, whose statements the guard judges: no source has it."""

from __future__ import annotations

from longthread.tools.analysis.dialects.dialect import SqlDialect, is_of_server

_FUNCTIONS = """
    abs ascii atn2 avg cast ceiling char charindex choose coalesce concat concat_ws convert count count_big
    cume_dist current_timestamp dateadd datediff datediff_big datefromparts datename datepart datetime2fromparts
    datetimefromparts datetrunc day degrees dense_rank difference eomonth exp first_value floor format
    generate_series getdate getutcdate greatest grouping hashbytes iif isdate isjson isnull isnumeric json_array
    json_modify json_object json_path_exists json_query json_value lag last_value lead least left len log log10
    lower ltrim max min month nchar newid ntile nullif openjson parse patindex percent_rank percentile_cont
    percentile_disc pi power quotename radians rand rank replace replicate reverse right round row_number rtrim sign
    sin soundex space sqrt square stdev stdevp str string_agg string_escape string_split stuff substring sum
    switchoffset sysdatetime sysdatetimeoffset sysutcdatetime tan timefromparts todatetimeoffset translate trim
    try_cast try_convert try_parse unicode upper var varp year
"""
_STATEMENTS = """
    SHUTDOWN RECONFIGURE CHECKPOINT WAITFOR KILL DBCC BACKUP RESTORE REVERT DENY EXEC EXECUTE PRINT RAISERROR THROW
"""


class _Tsql(SqlDialect):
    name = sqlglot = "tsql"
    title = "T-SQL"
    aliases = ("mssql",)
    functions = frozenset(_FUNCTIONS.split())
    has_variables = True
    statement_words = frozenset(_STATEMENTS.split())
    format_specs = ()

    def is_system(self, name: str, schema: str, catalog: str) -> bool:
        return is_of_server(name, schema, catalog)


DIALECT = _Tsql()
