"""Which migrations a database still needs."""

from __future__ import annotations

from longthread.errors import StoreTooNew
from longthread.store.queries import migrations


def latest(dialect: str) -> int:
    """The schema version that this Longthread writes."""
    return migrations(dialect)[-1][0]


def pending(dialect: str, version: int, where: str) -> list[str]:
    """The scripts that lead from `version` to the latest, in order.

    Raises:
        StoreTooNew: the database is ahead of this Longthread.
    """
    if version > latest(dialect):
        raise StoreTooNew(where=where, found=version, known=latest(dialect))
    return [sql for number, _, sql in migrations(dialect) if number > version]
