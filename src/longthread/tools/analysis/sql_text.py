"""SQL of a source's dialect, as sqlglot reads and writes it."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.generators.mysql import MySQLGenerator


def sqlglot_name(dialect: str) -> str:
    """What sqlglot calls a dialect."""
    return {"postgresql": "postgres", "mariadb": "mysql", "mssql": "tsql"}.get(dialect, dialect)


class _MysqlGenerator(MySQLGenerator):
    """Writes REGEXP, which MySQL and MariaDB both have, in place of REGEXP_LIKE."""

    def regexplike_sql(self, expression: exp.RegexpLike) -> str:
        if expression.args.get("flag"):
            return self.function_fallback_sql(expression)
        text = " REGEXP ".join(self._operand(one) for one in (expression.this, expression.expression))
        return text if isinstance(expression.parent, exp.Paren) else f"({text})"

    def _operand(self, operand: exp.Expr) -> str:
        plain = isinstance(operand, exp.Column | exp.Literal | exp.Paren | exp.Anonymous)
        return self.sql(operand) if plain else f"({self.sql(operand)})"


def written(tree: exp.Expr, dialect: str, *, comments: bool = True) -> str:
    """A tree as SQL."""
    if dialect == "mysql":
        return _MysqlGenerator(dialect="mysql", comments=comments).generate(tree)
    return tree.sql(sqlglot_name(dialect), comments=comments)
