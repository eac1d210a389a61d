"""The schema as SQL, written once in PostgreSQL's types for both backends, and its migrations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from longthread.errors import StoreTooNew, StoreUnavailable
from longthread.model.catalog import BUILTIN, Definition
from longthread.model.memory import ANALYST
from longthread.store.queries import queries, spelled_out
from longthread.store.rows import dump

if TYPE_CHECKING:
    from psycopg import AsyncConnection

APPLICATION_ID = 0x4C4F4E47
"""SQLite's `application_id` of a store: "LONG"."""
MIGRATIONS = "longthread_migrations"
"""The table of PostgreSQL that names the version of a store."""


_TEXT = re.compile(r"\b(?:TEXT(?:\[\])?|VARCHAR\(\d+\))")
_VECTOR = re.compile(r"\bVECTOR\b(?:\(\d+\))?")
_ROWLESS = " WITHOUT ROWID"
"""Marks SQLite tables that are stored in key order."""
_KINDS = r"BIGINT|BOOLEAN|BYTEA|DOUBLE PRECISION|FLOAT|INT|JSONB|TEXT\[\]|TIMESTAMPTZ|UUID|VARCHAR|VECTOR"
_COLUMN = re.compile(rf"^(    (\w+) +)({_KINDS})(?:\(\d+\))?(?![\w(])([^\n]*?)(,?)$", re.MULTILINE)
"""A column of one of these types: name, type, rest."""
_SQLITE = {
    "BIGINT": "INTEGER",
    "BOOLEAN": "INTEGER",
    "BYTEA": "BLOB",
    "DOUBLE PRECISION": "REAL",
    "FLOAT": "REAL",
    "INT": "INTEGER",
    "VECTOR": "BLOB",
}
"""SQLite types other than TEXT."""
_DEFAULTS = {
    "gen_random_uuid()": """(
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))))""",
    "now()": "(strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))",
}
_DATE = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_CLOCK = "[Tt ][0-9][0-9]:[0-9][0-9]"
_TIME = f"""(SELECT CASE WHEN utc GLOB '[0-9][0-9][0-9][0-9]-*' AND utc >= '0001' THEN utc END FROM (
    SELECT CASE typeof(given)
        WHEN 'text' THEN CASE WHEN strftime('%Y-%m-%dT%H:%M:%S', whole, '+0 days') = whole THEN
            strftime('%Y-%m-%dT%H:%M:%S', whole || zone) || '.' || substr(fraction || '000000', 1, 6) || '+00:00' END
        WHEN 'blob' THEN NULL
        ELSE strftime('%Y-%m-%dT%H:%M:%f000+00:00', given / CASE WHEN abs(given) > 1e11 THEN 1000.0 ELSE 1 END,
                      'unixepoch') END AS utc
    FROM (SELECT given, zone, substr(clock, 21) AS fraction, CASE
              WHEN clock GLOB '{_DATE}' THEN clock || 'T00:00:00'
              WHEN clock GLOB '{_DATE}{_CLOCK}' THEN substr(clock, 1, 10) || 'T' || substr(clock, 12, 5) || ':00'
              WHEN clock GLOB '{_DATE}{_CLOCK}:[0-9][0-9]' OR clock GLOB '{_DATE}{_CLOCK}:[0-9][0-9].[0-9]*'
                   AND substr(clock, 21) NOT GLOB '*[^0-9]*' THEN substr(clock, 1, 10) || 'T' || substr(clock, 12, 8)
              END AS whole
          FROM (SELECT given, rtrim(substr(given, 1, length(given) - zone_length)) AS clock, CASE zone_length
                    WHEN 6 THEN substr(given, -6) WHEN 5 THEN substr(given, -5, 3) || ':' || substr(given, -2)
                    WHEN 3 THEN substr(given, -3) || ':00' ELSE '+00:00' END AS zone
                FROM (SELECT given, CASE WHEN substr(given, 17) GLOB '*[Zz]' THEN 1
                          WHEN substr(given, 17) GLOB '*[+-][0-9][0-9]:[0-9][0-9]' THEN 6
                          WHEN substr(given, 17) GLOB '*[+-][0-9][0-9][0-9][0-9]' THEN 5
                          WHEN substr(given, 17) GLOB '*[+-][0-9][0-9]' THEN 3 ELSE 0 END AS zone_length
                      FROM (SELECT {{0}} AS given))))))"""
"""A time of text, or of seconds or milliseconds since 1970; NULL for one that would not come back the same."""
_SPACES = (
    *range(9, 14),
    *range(28, 32),
    0x85,
    0xA0,
    0x1680,
    *range(0x2000, 0x200B),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x3000,
)
"""What Python's `str.split` takes for spaces, in addition to the space."""
_TITLE = f"""(WITH RECURSIVE spaced (place, line) AS (
        SELECT 1, {{0}} UNION ALL
        SELECT place + 1, replace(line, substr(char({", ".join(map(str, _SPACES))}), place, 1), ' ') FROM spaced
        WHERE place <= {len(_SPACES)})
    SELECT nullif(substr(trim(replace(replace(replace(line, ' ', ' ' || char(1)), char(1) || ' ', ''), char(1), '')),
                         1, 50), '')
    FROM spaced ORDER BY place DESC LIMIT 1)"""
"""The first words of a question, with one space in the place of several."""
_ASCII_SPACES = "char(9, 10, 11, 12, 13, 32)"
_MESSAGE = """(SELECT group_concat(fullkey || ' ' || type || ' ' || coalesce(atom, ''), char(31)) FROM (
        SELECT * FROM json_tree(m.value) ORDER BY fullkey))"""
"""A message in one form, however its JSON is written."""
_MESSAGES = "SELECT m.key, {} AS message FROM json_each({}.authoritative_history) m"
_SHORTHAND = {
    "ANALYST": f"'{ANALYST}'",
    "BLOCKS_TEXT": """coalesce(CASE json_type({0}, '$.content') WHEN 'text' THEN json_extract({0}, '$.content')
        WHEN 'array' THEN (SELECT group_concat(CASE b.type WHEN 'text' THEN b.value WHEN 'object' THEN
            CASE WHEN coalesce(json_extract(b.value, '$.type'), 'text') = 'text'
                 THEN json_extract(b.value, '$.text') END
        END, '') FROM json_each({0}, '$.content') b) END, '')""",
    "CALL_ARGS": """coalesce(nullif(trim(coalesce(json_extract({0}, '$.function.arguments'),
        json_extract({0}, '$.arguments'), json_extract({0}, '$.args'), json_extract({0}, '$.input'))), ''), '{{}}')""",
    "CALL_NAME": "coalesce(json_extract({0}, '$.function.name'), json_extract({0}, '$.name'))",
    "ENTRY_SEQ": """(SELECT e.seq FROM entries e WHERE THREAD_KEY[e.thread_id] || ENTRY_KEY[e.id]
        = THREAD_KEY[{0}] || ENTRY_KEY[{1}] AND e.thread_id || '' = {0} AND e.id = {1})""",
    "GIVEN": """CASE WHEN json_type(given, '$.{0}') IS NULL THEN {1}
        ELSE json(substr(json_extract(given, '$.{0}', '$.{0}'), 2,
                         length(json_extract(given, '$.{0}', '$.{0}')) / 2 - 1))
        END""",
    "IS_FINISH": "(json_extract(NEW.step_data, '$.action') = 'finish')",
    "IS_SAID": f"""(trim(NEW.chunk, {_ASCII_SPACES}) = '' OR EXISTS (
        SELECT 1 FROM (
            SELECT char(10) || replace(e.text, char(13), '') || char(10) AS text,
                   trim(replace(NEW.chunk, char(13), ''), {_ASCII_SPACES}) AS chunk
            FROM entries e WHERE e.thread_id = NEW.thread_id
        ) WHERE instr(text, char(10) || chunk || char(10)) > 0
             OR length(chunk) >= 12 AND instr(text, chunk) > 0
                AND substr(text, instr(text, chunk) - 1, 1) NOT GLOB '[0-9A-Za-z_]'
                AND substr(text, instr(text, chunk) + length(chunk), 1) NOT GLOB '[0-9A-Za-z_]'))""",
    "IS_TEXT": "(typeof({0}) IN ('text', 'null') AND coalesce(instr({0}, char(0)), 0) = 0)",
    "LAST_RUN": """(SELECT r.id || ' ' || CASE WHEN r.status = 'running' AND r.waiting_since IS NOT NULL THEN 'waiting'
        ELSE r.status END FROM runs r WHERE r.thread_id = {0} ORDER BY r.id DESC LIMIT 1)""",
    "NOW": "strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')",
    "RANDOM_UUID": _DEFAULTS["gen_random_uuid()"],
    "SAME_MESSAGES": f"""(SELECT coalesce(min(key), json_array_length(OLD.authoritative_history)) FROM (
        SELECT key FROM ({_MESSAGES.format(_MESSAGE, "OLD")} UNION ALL {_MESSAGES.format(_MESSAGE, "NEW")})
        GROUP BY key HAVING count(*) < 2 OR min(message) <> max(message)))""",
    "STEP_TIME": """coalesce(STORED_TIME[NEW.created_at], STORED_TIME[json_extract(NEW.step_data, '$.timestamp')],
        NOW[])""",
    "STORED_TIME": _TIME,
    "TEXT_LIST": """({0} IS NULL OR CASE WHEN json_valid({0}) THEN json_type({0}) = 'array'
        AND NOT EXISTS (SELECT 1 FROM json_each({0}) j WHERE j.type <> 'text') ELSE FALSE END)""",
    "TITLE": _TITLE,
}
"""SQL that SQLite's triggers repeat: they have neither variables nor functions of ours."""
_SHORT = re.compile(rf"\b({'|'.join(_SHORTHAND)})\[([^\[\]]*)\]")
_PARAMETER = re.compile(r":(\w+)")
_CHECKS = {
    "BOOLEAN": "{0} IN (FALSE, TRUE)",
    "JSONB": "json_valid({0})",
    "TEXT[]": "json_valid({0}) AND json_type({0}) = 'array'",
    "VARCHAR": "length({0}) <= 100",
}
"""SQLite checks that replace PostgreSQL's types."""


_ADDED = {"upgrade_49": "access"}
"""Files of tables in `common`, by the upgrade that adds them to a store; a new store has them from its beginning."""


@cache
def schema(dialect: str, part: str) -> str:
    """Return a part of a dialect's schema as SQL: `tables`, `views`, or `upgrade_N`, which upgrades version N.

    PostgreSQL's has two more, for the first vector: `pgvector` adds the extension, `vectors` what depends on it.
    """
    own = _read(dialect, part)
    if part == "views":
        return _spell_out_triggers(own + _read(dialect, "writes"), dialect) + _builtins(dialect)
    if part in _ADDED:
        return _render_tables(dialect, _ADDED[part]) + own
    if part != "tables":
        return own
    tables = "".join(_render_tables(dialect, each) for each in ("tables", *_ADDED.values()))
    return (_read(dialect, "extensions") if dialect == "postgres" else "") + tables + own


def _render_tables(dialect: str, part: str) -> str:
    """Return a file of tables that both dialects have, in the types of one."""
    tables = _read("common", part)
    if dialect == "sqlite":
        return _COLUMN.sub(_column_of_sqlite, tables)
    # Independent of the database's collation. `vectors` makes vectors of bytes, where there is pgvector.
    return _VECTOR.sub("BYTEA", _TEXT.sub(r'\g<0> COLLATE "C"', tables).replace(_ROWLESS, ""))


def _spell_out_triggers(sql: str, dialect: str) -> str:
    """Spell out the words of triggers, the inner ones first."""
    while dialect == "sqlite" and _SHORT.search(sql):
        sql = _SHORT.sub(lambda word: _SHORTHAND[word[1]].format(*word[2].split("; ")), sql)
    return spelled_out(sql, dialect)


def _builtins(dialect: str) -> str:
    """Return what writes and keeps the rows of the built-in agents and skills."""
    kept = [each for each in BUILTIN.values() if each.kind in ("agent", "skill")]
    ids = ", ".join(_literal(each.id) for each in kept)
    rows = "\n\n".join(_render_row(each, dialect) for each in kept)
    return _read(dialect, "builtins").replace("BUILTIN_IDS", ids).replace("BUILTIN_ROWS;", rows)


def _render_row(definition: Definition, dialect: str) -> str:
    """Return the query that puts a built-in definition's row, with its values as literals."""
    assert definition.created_at is not None, "a built-in definition has a fixed time"
    at = definition.created_at.isoformat(timespec="microseconds")
    values = {**definition.body, "id": definition.id, "name": definition.name, "at": at}
    query = queries(dialect)[f"put_builtin_{definition.kind}"]
    return _PARAMETER.sub(lambda parameter: _literal(values[parameter[1]]), query)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    text = value if isinstance(value, str) else dump(value)
    return "'" + text.replace("'", "''") + "'"


def _column_of_sqlite(found: re.Match[str]) -> str:
    begin, name, kind, rest, end = found.groups()
    for default, ours in _DEFAULTS.items():
        rest = rest.replace(default, ours)
    if kind == "TEXT[]":
        rest = rest.replace("'{}'", "'[]'")
    check = _CHECKS.get(kind)
    if check and "CHECK" not in rest:
        rest += f" CHECK ({check.format(name)})"
    return f"{begin}{_SQLITE.get(kind, 'TEXT')}{rest}{end}"


def _read(folder: str, part: str) -> str:
    return (files("longthread.store") / "sql" / folder / "schema" / f"{part}.sql").read_text("utf-8")


SCHEMA_VERSION = 50
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
    row = await _fetch(
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
        (await _fetch(connection, "SELECT coalesce(max(number), 0) AS version FROM longthread_migrations"))["version"]
    )


async def _refuse_foreign(connection: AsyncConnection[Any], where: str) -> None:
    """Raise if the schema holds another program's tables."""
    ours = sorted({name for part in ("tables", "views") for name in _CREATED.findall(schema("postgres", part))})
    found = await _fetch(
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


async def _fetch(connection: AsyncConnection[Any], sql: str, values: list[Any] | None = None) -> Any:
    row = await (await connection.execute(sql.encode(), values)).fetchone()
    assert row is not None
    return row
