"""The values that a column may hold: labels of an enumeration, or a list in a CHECK."""

from __future__ import annotations

import re
from collections.abc import Mapping

Labels = Mapping[str, tuple[str, ...]]
"""Labels by the column's name in lower case."""

_ENUMERATION = re.compile(r"(?:enum|set)\s*\(", re.I)
_LABEL = re.compile(r"'((?:[^']|'')*)'")
_CHECK = re.compile(r"\bCHECK\b", re.I)


def labels_of_type(type_name: str) -> tuple[str, ...]:
    """The labels in a type such as `ENUM('a', 'b')`, `set('a','b')` or `ENUM('a', 'b')[]`."""
    if not _ENUMERATION.match(type_name):
        return ()
    return tuple(label.replace("''", "'") for label in _LABEL.findall(type_name))


def labels_of_checks(statement: str, dialect: str) -> Labels:
    """The labels that a CREATE TABLE statement's CHECKs, or a single CHECK, allow."""
    if not _CHECK.search(statement) or "'" not in statement:
        return {}
    # Imported here: sqlglot is slow to load, and most tables have no such condition.
    from longthread.tools.analysis.check_constraints import listed

    alone = _CHECK.match(statement.lstrip())
    return listed(f"CREATE TABLE t ({statement})" if alone else statement, dialect)
