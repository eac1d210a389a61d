"""What a column may hold, where the database says it: the labels of an enumeration, or of a CHECK that lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping

Labels = Mapping[str, tuple[str, ...]]
"""Labels by column, whose name is in small letters."""

_ENUMERATION = re.compile(r"(?:enum|set)\s*\(", re.I)
_LABEL = re.compile(r"'((?:[^']|'')*)'")
_CHECK = re.compile(r"\bCHECK\b", re.I)


def labels_of_type(type_name: str) -> tuple[str, ...]:
    """The labels in a type such as `ENUM('a', 'b')`, `set('a','b')` or `ENUM('a', 'b')[]`."""
    if not _ENUMERATION.match(type_name):
        return ()
    return tuple(label.replace("''", "'") for label in _LABEL.findall(type_name))


def labels_of_checks(statement: str, dialect: str) -> Labels:
    """The labels that the CHECKs of a CREATE TABLE statement, or one CHECK alone, leave columns."""
    if not _CHECK.search(statement) or "'" not in statement:
        return {}
    # Here and not above: what reads SQL takes time to load, and most tables have no such condition.
    from longthread.tools.analysis.check_constraints import listed

    alone = _CHECK.match(statement.lstrip())
    return listed(f"CREATE TABLE t ({statement})" if alone else statement, dialect)
