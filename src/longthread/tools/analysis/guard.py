"""Decides, on the parse tree, whether an SQL text only reads.

It is the first of two fences: what passes runs on a connection that cannot write either. A statement passes when it is
one statement, parses in the source's dialect, is a query at its root, writes nowhere inside, and calls and reads only
what is known to be harmless.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import new_class

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from longthread.errors import SqlRefused
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.value_size import LARGEST, built_size, name_of

_LONGEST = 20_000
"""Characters of one statement: parsing 130,000 took 2.5 s, and no question needs that many."""

_STEPS = 50
"""Steps of the parser for each token; everyday statements take one or two."""
BROKEN = (AttributeError, TypeError, ValueError, LookupError)
"""What sqlglot raises of its own where a text is no SQL in a way that it did not expect."""

_ROOTS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.Describe, exp.Summarize, exp.Pivot)
_REFUSED_NODES: dict[type[exp.Expr], str] = {
    exp.Insert: "it inserts rows",
    exp.Update: "it updates rows",
    exp.Delete: "it deletes rows",
    exp.Merge: "it merges rows",
    exp.Create: "it creates something",
    exp.Drop: "it drops something",
    exp.Alter: "it alters something",
    exp.TruncateTable: "it empties a table",
    exp.Into: "SELECT INTO writes",
    exp.Lock: "it locks rows",
    exp.Command: "it is a command, not a query",
    exp.Set: "it changes a setting",
    exp.Pragma: "it is a PRAGMA",
    exp.Copy: "it copies data to or from files",
    exp.Attach: "it attaches a database",
    exp.Detach: "it detaches a database",
    exp.Export: "it exports the database",
    exp.Install: "it installs code",
    exp.LoadData: "it loads a file",
    exp.Use: "it changes the session",
    exp.Execute: "it runs dynamic SQL",
    exp.ExecuteSql: "it runs dynamic SQL",
    exp.Kill: "it kills a session",
    exp.Grant: "it changes permissions",
    exp.Revoke: "it changes permissions",
    exp.Comment: "it changes a comment",
    exp.Analyze: "it changes statistics",
    exp.Transaction: "it controls the transaction",
    exp.Commit: "it controls the transaction",
    exp.Rollback: "it controls the transaction",
    exp.SessionParameter: "it reads settings of the server",
    exp.Directory: "it writes a file",
    exp.PropertyEQ: "",  # an assignment in MySQL, a named argument elsewhere: judged by dialect
}
_REFUSED_FUNCTIONS = (exp.ReadCSV, exp.ReadParquet, exp.NextValueFor, exp.NetFunc, exp.Secret, exp.Predict, exp.ToFile)
_STANDARD_TABLES = """
    tables columns views schemata table_constraints key_column_usage referential_constraints constraint_column_usage
    constraint_table_usage check_constraints statistics sequences domains element_types
"""
_INFORMATION_SCHEMA = frozenset(_STANDARD_TABLES.split())
_FILE = re.compile(
    r"://|[*?]|[/\\]|\.(?:[ct]sv|parquet|jsonl?|ndjson|txt|db|duckdb|sqlite|xlsx|arrow)(?:\.gz|\.zst)?$", re.I
)
_DANGEROUS = """
    st_read st_read_meta st_readosm st_readshp st_drivers st_createoverview st_fromgdalraster
    load_extension readfile writefile edit fts3_tokenizer getenv query query_table read_text read_blob glob
    json_execute_serialized_sql dblink dblink_exec dblink_connect set_config lo_import lo_export pg_sleep pg_read_file
    load_file benchmark sleep get_lock release_lock release_all_locks is_free_lock is_used_lock master_pos_wait
    source_pos_wait wait_for_executed_gtid_set last_insert_id nextval setval name_const
    openrowset openquery opendatasource xp_cmdshell
"""
_NEVER = frozenset(_DANGEROUS.split())
"""Names of functions that stay refused even where a database defines a function so called."""
_QUOTED = frozenset(
    {TokenType.STRING, TokenType.IDENTIFIER, TokenType.NATIONAL_STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING,
     TokenType.UNICODE_STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.BIT_STRING}
)  # fmt: skip
_CONTINUED = (TokenType.BYTE_STRING, TokenType.STRING)
_EXPLAIN_WORDS = frozenset({"QUERY", "PLAN", "ANALYZE", "ANALYSE", "VERBOSE", "EXTENDED", "PARTITIONS"})
_OPTIONS = """
    ANALYZE ANALYSE VERBOSE COSTS SETTINGS GENERIC_PLAN BUFFERS SERIALIZE WAL TIMING SUMMARY MEMORY FORMAT
"""
_EXPLAIN_OPTIONS = frozenset(_OPTIONS.split())
"""What may stand first in the parentheses of an EXPLAIN; anything else there is the statement."""

# sqlglot logs that it met a statement it does not know; such a statement is refused, with its reason.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


class _ModuloParser(Parser):
    """Reads `LIMIT 2 - n % 2`, where sqlglot takes the % for a percentage, which not every database has."""

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:
        return super()._parse_term(parse_mod=True)


class _Stepping(Parser):
    """Gives up in time: sqlglot tries some nested calls, as `date(date(…))`, in two ways at each level."""

    left: int

    def _advance(self, times: int = 1) -> None:
        self.left -= 1
        if self.left < 0:
            raise _make_refusal("it is nested so that reading it takes too long. Nest fewer calls")
        super()._advance(times)


@cache
def _stepping(dialect: str, modulo: bool) -> type[_Stepping]:
    kind = Dialect.get_or_raise(dialect).parser_class
    bases = (_Stepping, _ModuloParser, kind) if modulo else (_Stepping, kind)
    made: type[_Stepping] = new_class(f"Stepping{kind.__name__}", bases)
    return made


@cache
def _find_foreign(name: str) -> frozenset[str]:
    """Return the functions that sqlglot knows and a database lacks: somebody may have defined them in it."""
    dialect = find_dialect(name)
    if not dialect.own_words:
        return frozenset()
    parser = Dialect.get_or_raise(dialect.sqlglot).parser_class
    typed = {each.casefold() for each in (*parser.FUNCTIONS, *parser.FUNCTION_PARSERS)}
    return frozenset(typed - dialect.functions - dialect.own_words)


@dataclass(frozen=True)
class Judged:
    """A statement that may run. Of an EXPLAIN, `tree` is what it explains."""

    text: str
    tree: exp.Expr
    explains: bool = False


class Guard:
    """The guard of one dialect: `sqlite`, `postgresql`, `mysql`, `duckdb`; `tsql` is judged too."""

    def __init__(self, dialect: str) -> None:
        self._dialect = find_dialect(dialect)
        self._foreign = _find_foreign(dialect)

    def check(self, sql: str, *, functions: Collection[str] = (), tables: Collection[str] = ()) -> str:
        """The statement to run, as `judge` says. Raises SqlRefused, with the reason."""
        return self.judge(sql, functions=functions, tables=tables).text

    def judge(
        self,
        sql: str,
        *,
        functions: Collection[str] = (),
        tables: Collection[str] = (),
        defined: Collection[str] = (),
    ) -> Judged:
        """The statement to run, `sql` without its closing semicolon, and its tree.

        `functions` are names that the database itself defines and that only read; `tables` are names of its tables,
        which may look like file names; `defined` are names of all functions that the database itself defines, which
        may be those of harmless ones. Raises SqlRefused, with the reason.
        """
        text = self._bare(sql)
        known = {name.casefold() for name in functions}
        own = {name.casefold() for name in defined} - known
        statement, explains = self._parse_statement(text, own)
        files = {name.casefold() for name in tables}
        for node in statement.walk():
            self._check_node(node, own)
            if isinstance(node, exp.Func):
                self._check_function(node, known)
            elif isinstance(node, exp.Table):
                self._check_table(node, files)
        size, builder = built_size(statement, self._dialect)
        if size > LARGEST:
            raise _make_refusal(
                f"{builder} would build more than {LARGEST} characters or elements. Write smaller numbers, bound those "
                "from a column by least(…, 1000), and let range or generate_series stand after FROM, for rows"
            )
        return Judged(text.rstrip("; \t\r\n"), statement, explains)

    def _bare(self, sql: str) -> str:
        text = sql.strip()
        if not text:
            raise _make_refusal("it is empty")
        if "\0" in text:
            raise _make_refusal("it contains a NUL character")
        if len(text) > _LONGEST:
            raise _make_refusal(f"it has {len(text)} characters, and the limit is {_LONGEST}. Write a shorter one")
        if self._dialect.has_odd_comment(text):
            raise _make_refusal("it has an executable comment, a hint, or a comment that others read otherwise")
        return text

    def _parse_statement(self, text: str, own: Collection[str]) -> tuple[exp.Expr, bool]:
        """The tree, and whether it is what an EXPLAIN explains."""
        try:
            query = _behind_explain(text, self._dialect.sqlglot)
            tokens = sqlglot.tokenize(query, read=self._dialect.sqlglot)
            _check_characters(tokens, query)
            parsed = self._parser(len(tokens)).parse(tokens, query)
        except (SqlglotError, *BROKEN) as error:
            raise _make_refusal(f"it cannot be parsed as {self._dialect.sqlglot} ({_first_line(error)})") from error
        except RecursionError as error:
            raise _make_refusal("it is nested too deeply") from error
        _check_called(tokens, own, "is one of a database's own")
        if self._foreign:
            _check_called(tokens, self._foreign, f"is not one that {self._dialect.title} has")
        if self._dialect.pipes_are_or and any(token.token_type is TokenType.DPIPE for token in tokens):
            raise _make_refusal(f"|| is OR in {self._dialect.title}, and joins no texts. Write CONCAT(…), or OR")
        statements = [one for one in parsed if one is not None and not isinstance(one, exp.Semicolon)]
        if len(statements) != 1:
            raise _make_refusal("it is more than one statement" if statements else "it is empty")
        root = statements[0]
        if type(root) in _REFUSED_NODES:
            raise _make_refusal(_REFUSED_NODES[type(root)])
        listing = isinstance(root, exp.Show) and root.name.upper() == "TABLES" and not root.args.get("db")
        if not isinstance(root, _ROOTS) and not (listing and self._dialect.shows_tables):
            raise _make_refusal(f"it is a {root.key.upper()}, not a query")
        return root, query is not text

    def _parser(self, tokens: int) -> Parser:
        name = self._dialect.sqlglot
        parser = _stepping(name, self._dialect.modulo_in_limit)(dialect=Dialect.get_or_raise(name))
        parser.left = _STEPS * tokens + 1_000
        return parser

    def _check_node(self, node: exp.Expr, own: Collection[str]) -> None:
        reason = _REFUSED_NODES.get(type(node))
        if reason:
            raise _make_refusal(reason)
        if isinstance(node, exp.PropertyEQ | exp.Parameter) and self._dialect.has_variables:
            raise _make_refusal("it uses a variable")
        if isinstance(node, exp.Describe | exp.Summarize) and isinstance(node.this, exp.Literal):
            raise _make_refusal("it would read a file")
        are_own = self._dialect.qualified_calls_are_own
        if are_own and isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            raise _make_refusal(f"the function {node.expression.name[:60]} is one of a database's own")
        if isinstance(node, exp.Dot) and node.expression.name.casefold() in own:  # (row).f is f(row) in PostgreSQL
            raise _make_refusal(f"{node.expression.name[:60]} is a function of a database's own")
        begins = self._dialect.statement_words
        if begins and isinstance(node, exp.Alias | exp.TableAlias) and _is_statement(node, begins):
            raise _make_refusal("it is more than one statement")

    def _check_function(self, node: exp.Func, known: Collection[str]) -> None:
        if isinstance(node, _REFUSED_FUNCTIONS):
            raise _make_refusal(f"the function {node.sql_name().lower()} is not allowed")
        name = name_of(node)
        if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) and not self._may_call(name, known):
            raise _make_refusal(f"the function {name[:60]} is not one that is known to only read")

    def _may_call(self, name: str, known: Collection[str]) -> bool:
        if name in _NEVER:
            return False
        dialect = self._dialect
        return name in dialect.functions or name in known or name.startswith(dialect.function_families)

    def _check_table(self, table: exp.Table, known: Collection[str]) -> None:
        if isinstance(table.this, exp.Func):
            return
        name, schema = table.name.casefold(), table.db.casefold()
        if len([part for part in table.parts if part.name]) > 3:
            raise _make_refusal("it reads from another server")
        if isinstance(table.this, exp.Literal) or (
            self._dialect.reads_named_files and _FILE.search(name) and name not in known
        ):
            raise _make_refusal(f"it would read the file {table.name[:60]}")
        if self._is_system(name, schema, table.catalog.casefold()):
            raise _make_refusal(f"it reads {table.name[:60]}, which belongs to the database system")

    def _is_system(self, name: str, schema: str, catalog: str) -> bool:
        if schema == "information_schema":
            return name not in _INFORMATION_SCHEMA
        return self._dialect.is_system(name, schema, catalog)


def _check_called(tokens: Sequence[Token], names: Collection[str], reason: str) -> None:
    """Refuses calls by name, as they are written: a function that sqlglot has a type for (`month`, `levenshtein`) may
    be one that a database itself has defined, and the type says nothing of what that does."""
    for token, following in pairwise(tokens):
        if following.token_type is TokenType.L_PAREN and token.text.casefold() in names:
            raise _make_refusal(f"the function {token.text[:60]} {reason}")


def _check_characters(tokens: Sequence[Token], text: str) -> None:
    """Refuses what the database would take apart otherwise than we do: an invisible character is a letter of a name
    for one reader and a space for the other, and `{#` begins a comment for ours alone."""
    inside = 0
    for token in tokens:
        if token.token_type in _QUOTED:
            inside += text.count("{#", token.start, token.end + 1)
        elif not " ".join(token.text.split()).isprintable():  # a word such as GROUP BY may hold blanks
            raise _make_refusal("a name in it has an invisible character. Write it without, or in quotes")
    if any((one.token_type, two.token_type) == _CONTINUED for one, two in pairwise(tokens)):
        raise _make_refusal("a text goes on behind E'…', by rules of that. Write one text, or ||")
    if text.count("{#") > inside:
        raise _make_refusal("{# is no SQL")


def _is_statement(alias: exp.Expr, words: Collection[str]) -> bool:
    """Whether an alias is a statement, which one of these words begins: T-SQL needs nothing between two of them."""
    name = alias.args.get("alias") or alias.this
    return isinstance(name, exp.Identifier) and not name.quoted and name.name.upper() in words


def _behind_explain(text: str, dialect: str) -> str:
    """The statement that an EXPLAIN explains, or the text itself. The explained statement is judged as if it ran,
    since EXPLAIN ANALYZE runs it."""
    if "EXPLAIN" not in text.upper():
        return text
    tokens = sqlglot.tokenize(text, read=dialect)
    if not tokens or tokens[0].text.upper() != "EXPLAIN":
        return text
    rest = text[tokens[0].end + 1 :]
    tokens = sqlglot.tokenize(rest, read=dialect)  # by itself: after EXPLAIN, sqlglot reads no words
    place = _behind_options(tokens)
    return rest[tokens[place].start :] if place < len(tokens) else ""


def _behind_options(tokens: Sequence[Token]) -> int:
    """The place of the first token that is no option of an EXPLAIN. Options are taken token by token: a parenthesis in
    a comment or in a text ends none."""
    words = [*(token.text.upper() for token in tokens), "", ""]
    place = 0
    while words[place] in _EXPLAIN_WORDS or words[place : place + 2] == ["FORMAT", "="]:
        place += 1 if words[place] in _EXPLAIN_WORDS else 3
    if words[place] == "(" and words[place + 1] in _EXPLAIN_OPTIONS:
        while place < len(tokens) and tokens[place].token_type is not TokenType.R_PAREN:
            place += 1
        place += 1
    return place


def _first_line(error: Exception) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    return " ".join(plain.split())[:200]


def _make_refusal(reason: str) -> SqlRefused:
    return SqlRefused(reason=f"{reason}.")
