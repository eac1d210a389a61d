"""Rewrites a statement to read no more than its user may, or refuses it.

Every table is looked up in the whole schema. A restricted one becomes a subquery of the permitted columns and rows; a
hidden or unknown one is refused, and so are the catalog, plans, and the database's own functions, which may read
anything. The result is parsed again: each restricted table in it must be inside one of these subqueries.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from longthread.errors import SqlRefused, TableNotFound
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.guard import BROKEN, Guard
from longthread.tools.analysis.schema import Table
from longthread.tools.analysis.sql_text import sqlglot_name, write_sql
from longthread.tools.analysis.user_policy import Restricted
from longthread.tools.analysis.value_size import name_of

_PLAIN_PARTS = frozenset({"this", "db", "catalog", "alias", "joins", "laterals"})
_SYSTEM_SCHEMAS = frozenset({"information_schema", "pg_catalog", "pg_toast"})
_SYSTEM = ("sqlite_", "pg_", "duckdb_", "pragma_")
_LONGEST_NAME = 60
"""Characters of a column's name: databases take 64 at least."""
_NUMBERED = re.compile(r"reg(?!exp|r_)")
"""PostgreSQL's types for catalog objects (`regclass`), and functions of these names."""
_HARMLESS = frozenset({"pg_typeof", "pg_size_pretty"})
_TELLING = """
    col_description format_type obj_description st_estimatedextent st_findextent ts_stat ts_rewrite
"""
_CATALOG = frozenset(_TELLING.split())
_ROWS = """
    unnest explode json_table generate_series exploding_generate_series range generate_subscripts repeat_row
    json_each json_tree json_each_text json_array_elements json_array_elements_text json_object_keys json_to_record
    json_to_recordset jsonb_each jsonb_tree jsonb_each_text jsonb_array_elements jsonb_array_elements_text
    jsonb_object_keys jsonb_to_record jsonb_to_recordset jsonb_path_query regexp_matches regexp_split_to_table
    string_to_table
"""
_AFTER_FROM = frozenset(_ROWS.split())
"""Table functions of their arguments alone. Others may read a table by its name, as DuckDB's histogram does."""


def rewrite_statement(sql: str, restricted: Restricted, dialect: str) -> str:
    """Rewrites a statement. Raises SqlRefused, TableNotFound."""
    judged = Guard(dialect).judge(sql, tables=restricted.whole.tables, defined=restricted.defined)
    if judged.explains:
        raise _make_refusal("a plan tells more than its rows, and this source is not open to everybody.")
    if not isinstance(judged.tree, exp.Query):
        raise _make_refusal("of a source that is not open to everybody, only rows can be selected.")
    tree = judged.tree.copy()
    _check(tree, restricted)
    _check_types(tree, restricted)
    if find_dialect(dialect).names_items:
        _name(tree, dialect)
    injected: set[str] = set()
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier):
            _replace(table, restricted, dialect, injected)
    _drop_schemas(tree, restricted, dialect)
    text = _text(tree, dialect)
    _verify(text, restricted, dialect, injected)
    return text


def _text(tree: exp.Expr, dialect: str) -> str:
    try:
        return write_sql(tree, dialect, comments=False)
    except (SqlglotError, *BROKEN, RecursionError) as error:  # such as NATURAL FULL JOIN, in MySQL
        raise _make_refusal("it cannot be written anew for this database. Write it otherwise.") from error


def _check(tree: exp.Expr, restricted: Restricted) -> None:
    for cte in tree.find_all(exp.CTE):
        # Whether such a name means the table or the query depends on where it stands, and on the database.
        if cte.alias.casefold() in restricted.names:
            raise _make_refusal(f"WITH gives the name of the table {cte.alias} to something else. Choose another name.")
    for call in tree.find_all(exp.Func):
        name = name_of(call)
        if isinstance(call.parent, exp.Table | exp.Lateral) and name not in _AFTER_FROM:
            raise _make_refusal(f"the function {name} after FROM may read any table.")
        if (name.startswith(_SYSTEM) and name not in _HARMLESS) or name in _CATALOG or _NUMBERED.match(name):
            raise _make_refusal(f"the function {name} tells of the whole database, which is not open to everybody.")
    if any(one.args.get("field") is not None for one in tree.find_all(exp.In)):
        raise _make_refusal("IN without parentheses may read a table. Write IN (SELECT … FROM …).")
    if tree.find(exp.Pivot):
        raise _make_refusal("PIVOT cannot be bounded to the rows that may be read. Use CASE and GROUP BY.")


def _check_types(tree: exp.Expr, restricted: Restricted) -> None:
    """In PostgreSQL a table is also a type: a cast reveals its columns, and regclass reveals names."""
    for cast in tree.find_all(exp.ObjectIdentifier):
        raise _make_refusal(f"{cast.name} tells of the whole database, which is not open to everybody.")
    for type_ in tree.find_all(exp.DataType):
        kind = type_.args.get("kind")
        name = (kind.name if isinstance(kind, exp.Expr) else str(kind or "")).rpartition(".")[2].strip('"').casefold()
        if name in restricted.names or _NUMBERED.match(name):
            raise _make_refusal(f"the type {name[:60]} tells of the whole database, which is not open to everybody.")


def _name(tree: exp.Expr, dialect: str) -> None:
    """Names the selected items as the database would for the original statement: its names for the rewritten one would
    reveal the policy's conditions."""
    first = tree
    while not isinstance(first, exp.Select):
        inner = first.args.get("this")
        if not isinstance(inner, exp.Query):
            return
        first = inner
    for item in first.expressions:
        if not isinstance(item, exp.Alias) and item.find(exp.Table):
            name = _text(item, dialect)[:_LONGEST_NAME]
            item.replace(exp.alias_(item.copy(), exp.to_identifier(name, quoted=True)))


def _replace(table: exp.Table, restricted: Restricted, dialect: str, injected: set[str]) -> None:
    found = _meant(table, restricted)
    if found is None:
        return
    if found.label not in restricted.schema.tables:
        raise TableNotFound(table=table.name[:200], nearest=restricted.schema.nearest(table.name))
    relation = restricted.relations.get(found.label)
    if relation is None:
        return
    extra = [key for key, value in table.args.items() if value and key not in _PLAIN_PARTS]
    if extra:
        raise _make_refusal(
            f"{table.name} stands with {extra[0].upper()}, which cannot be bounded to what may be read."
        )
    query = sqlglot.parse_one(relation, read=sqlglot_name(dialect))
    injected.add(write_sql(query.this, dialect))
    alias = table.args.get("alias") or exp.TableAlias(this=table.this.copy())
    query.set("alias", alias.copy())
    for key in ("joins", "laterals"):
        if table.args.get(key):
            query.set(key, table.args[key])
    table.replace(query)


def _meant(table: exp.Table, restricted: Restricted) -> Table | None:
    """The named table; None for a common table expression."""
    name, schema = table.name.casefold(), table.db.casefold()
    if schema in _SYSTEM_SCHEMAS or (name.startswith(_SYSTEM) and name not in restricted.names):
        raise _make_refusal("it reads the catalog, which tells of the whole database.")
    found = restricted.names.get(name, [])
    if not schema and not found and _is_in_sight(table, name):
        return None
    if schema and len(found) > 1:
        found = [one for one in found if one.label.casefold() == f"{schema}.{name}"]
    elif len(found) > 1:
        found = [one for one in found if one.label.casefold() == name]
    if schema and len(found) == 1 and schema not in _schemas(found[0], restricted.whole.home):
        found = []
    if len(found) != 1:
        raise TableNotFound(table=table.sql()[:200], nearest=restricted.schema.nearest(table.name))
    return found[0]


def _is_in_sight(table: exp.Table, name: str) -> bool:
    """Whether every database sees a common table expression of this name here: in the statement of its WITH, in a later
    expression, or in itself if it is recursive."""
    inside: exp.Expr = table
    node = table.parent
    while node is not None:
        clause = node if isinstance(node, exp.With) else node.args.get("with_")
        if clause is not None and clause is not inside:
            for cte in clause.expressions:
                if cte is inside and not clause.args.get("recursive"):
                    break  # it does not see itself, nor what follows
                if cte.alias.casefold() == name:
                    return True
                if cte is inside:
                    break
        inside, node = node, node.parent
    return False


def _schemas(table: Table, home: str) -> set[str]:
    """The schemas that may qualify a table's name."""
    if home:
        return {home.casefold()}
    before, dot, _ = table.label.rpartition(".")
    return {before.casefold()} if dot else {"main", "public"}


def _drop_schemas(tree: exp.Expr, restricted: Restricted, dialect: str) -> None:
    """Shortens `main.t.a` to `t.a`, as a subquery has no schema. In DuckDB the name may be a field of a struct: there
    only `main` is dropped."""
    home = restricted.whole.home
    schemas = {name for table in restricted.whole.tables.values() for name in _schemas(table, home)}
    dropped = {"main"} if find_dialect(dialect).has_structs else schemas
    for column in tree.find_all(exp.Column):
        owner = column.args.get("db")
        if owner is not None and owner.name.casefold() in dropped:
            column.set("db", None)
            column.set("catalog", None)


def _verify(text: str, restricted: Restricted, dialect: str, injected: set[str]) -> None:
    tree = Guard(dialect).judge(text, tables=restricted.whole.tables).tree
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            continue
        guarded = [one for one in restricted.names.get(table.name.casefold(), []) if _is_guarded(one, restricted)]
        if guarded and not _is_inside(table, dialect, injected):
            raise _make_refusal(
                f"it could not be bounded to the rows of {table.name} that may be read. Write it otherwise."
            )


def _is_guarded(table: Table, restricted: Restricted) -> bool:
    return table.label in restricted.relations or table.label not in restricted.schema.tables


def _is_inside(table: exp.Table, dialect: str, injected: set[str]) -> bool:
    node = table.find_ancestor(exp.Select)
    while node is not None:
        if write_sql(node, dialect) in injected:
            return True
        node = node.find_ancestor(exp.Select)
    return False


def _make_refusal(reason: str) -> SqlRefused:
    return SqlRefused(reason=reason)
