"""Schema migrations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from longthread.errors import StoreTooNew, StoreUnavailable
from longthread.store.schema import schema

if TYPE_CHECKING:
    from psycopg import AsyncConnection

SCHEMA_VERSION = 49
"""The schema version of a new store: `schema(dialect, part)` of `tables` and `views`."""
OLDEST_VERSION = 49
"""The first release's schema version. From it on, `upgrade_N.sql` leads from version N to the next one. Stores and
exports of older versions are refused."""
OLDEST_COMMIT = "9a783799"
"""The commit of Longthread that brings older stores to `OLDEST_VERSION` and reads older exports. If a store is too old
for that commit as well, its error names the one to run before it."""
IMPORTABLE = frozenset(
    {"conversations", "conversation_steps", "sessions", "messages", "agents", "skills", "tools", "memories"}
    | {"conversation_state", "thread_activity", "conversation_summaries", "memory_vectors", "memory_topics"}
    | {"checkpoints", "checkpoint_blobs", "checkpoint_writes", "writes", "store"}
)
"""Tables of the source documents and of LangGraph's savers and stores."""
LOCK = 0x4C4F4E47
"""The advisory lock of PostgreSQL migrations: "LONG"."""
_CREATED = re.compile(r"^CREATE (?:OR REPLACE )?(?:TABLE|VIEW|MATERIALIZED VIEW)\s+(\w+)", re.MULTILINE)


def pending(version: int, where: str) -> list[tuple[int, str]]:
    """Return the upgrades from `version` (0: no schema) to `SCHEMA_VERSION`, as (version after, part).

    Views are created again after the last upgrade. Raises `StoreTooNew`, or `StoreUnavailable` for a schema that is too
    old.
    """
    if version > SCHEMA_VERSION:
        raise StoreTooNew(where=where, found=version, known=SCHEMA_VERSION)
    if not version:
        return [(SCHEMA_VERSION, "tables"), (SCHEMA_VERSION, "views")]
    if version < OLDEST_VERSION:
        raise StoreUnavailable(
            where=where,
            reason=f"its schema has version {version}, from before the first release, which this Longthread does not "
            f"upgrade. Install Longthread's commit {OLDEST_COMMIT} and run `longthread db upgrade` with it: that "
            f"brings the store to version {OLDEST_VERSION}, which this Longthread opens.",
        )
    upgrades = [(number + 1, f"upgrade_{number}") for number in range(version, SCHEMA_VERSION)]
    return [*upgrades, (SCHEMA_VERSION, "views")] if upgrades else []


def how_to_import(tables: Iterable[str]) -> str:
    """Return how another program's conversations come into a store, if it has tables of these names."""
    if IMPORTABLE.isdisjoint(tables):
        return ""
    return " Its conversations come into a store by `longthread import`, with this address."


async def migrate_postgres(
    connection: AsyncConnection[Any], where: str, *, creates: bool = True, migrates: bool = True
) -> int:
    """Migrate in one transaction and return the version found, 0 if new. Concurrent callers wait.

    Without `creates` or `migrates`, a store must exist; without `migrates` its schema does not change.

    Raises:
        StoreUnavailable: foreign tables, a schema that is too old, or no store.
        StoreTooNew: a newer Longthread wrote it.
        psycopg.Error: a statement failed; nothing changed.
    """
    version = await _version(connection, where)
    if version is None and not (creates and migrates):
        await _refuse_foreign(connection, where)  # none could be made either
        raise StoreUnavailable(where=where, reason="there is none yet. `longthread db upgrade` makes one.")
    if version is not None and not (pending(version, where) and migrates):
        return version
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        version = await _version(connection, where)
        if version is None:
            await _refuse_foreign(connection, where)
            await connection.execute(
                'CREATE TABLE longthread_migrations (number BIGINT PRIMARY KEY, name TEXT COLLATE "C" NOT NULL, '
                'applied_at TEXT COLLATE "C" NOT NULL)'
            )
        for number, part in pending(version or 0, where):
            await connection.execute(schema("postgres", part).encode())
            if part == "tables" and await _has_pgvector(connection):
                await connection.execute(schema("postgres", "vectors").encode())
            await connection.execute(
                "INSERT INTO longthread_migrations VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                [number, part, datetime.now(UTC).isoformat(timespec="microseconds")],
            )
    return version or 0


async def _has_pgvector(connection: AsyncConnection[Any]) -> bool:
    """Return whether the database has pgvector, or got it now. Without it, a store has no vectors (see
    `require_vectors`)."""
    import psycopg

    try:
        async with connection.transaction():
            await connection.execute(schema("postgres", "pgvector").encode())
    except psycopg.DatabaseError:
        return False
    return True


async def _version(connection: AsyncConnection[Any], where: str) -> int | None:
    """Return the schema version; None if Longthread has never used the database."""
    row = await _row(
        connection,
        "SELECT current_schema() AS schema, current_setting('server_encoding') AS encoding, EXISTS (SELECT FROM "
        "pg_tables WHERE schemaname = current_schema() AND tablename = 'longthread_migrations') AS ours",
    )
    if row["schema"] is None:
        raise StoreUnavailable(where=where, reason="its search_path names no schema that exists. Create one.")
    if row["encoding"] != "UTF8":
        raise StoreUnavailable(where=where, reason=f"its encoding is {row['encoding']}, and it must be UTF8.")
    if not row["ours"]:
        return None
    return int(
        (await _row(connection, "SELECT coalesce(max(number), 0) AS version FROM longthread_migrations"))["version"]
    )


async def _refuse_foreign(connection: AsyncConnection[Any], where: str) -> None:
    """Raise if the schema holds another program's tables."""
    ours = sorted({name for part in ("tables", "views") for name in _CREATED.findall(schema("postgres", part))})
    found = await _row(
        connection,
        "SELECT string_agg(relname, ', ' ORDER BY relname) AS names FROM pg_class "
        "WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%s)",
        [ours],
    )
    if found["names"]:
        raise StoreUnavailable(
            where=where,
            reason=f"it holds tables of another program ({found['names']}), which Longthread would need the names of. "
            "Give Longthread a database or a schema of its own." + how_to_import(found["names"].split(", ")),
        )


async def _row(connection: AsyncConnection[Any], sql: str, values: list[Any] | None = None) -> Any:
    row = await (await connection.execute(sql.encode(), values)).fetchone()
    assert row is not None
    return row
