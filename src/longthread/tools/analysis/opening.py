"""From what a user names to an open source."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from longthread.errors import SourceEmpty, SourceNotFound
from longthread.tools.analysis.engine import Engine
from longthread.tools.analysis.engines.sqlite import SqliteEngine
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.spaceflight import spaceflight_database

DEMO = "demo"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+_.-]*://")
_SQLITE_MAGIC = b"SQLite format 3\0"


async def open_source(spec: str, *, limits: Limits | None = None, demo_folder: Path | None = None) -> Source:
    """Opens `demo`, a database file, a data file, a folder of data files or a SQLAlchemy URL, to be read only.

    `demo_folder` is where the demo database is kept, the user's cache folder by default. Raises SourceNotFound,
    SourceUnreadable, SourceEmpty, SourceLocked and other SourceErrors; none of them shows a password.
    """
    limits = limits or Limits()
    engine, shown = await asyncio.to_thread(_engine, spec.strip(), limits, demo_folder)
    source = Source(shown, engine, limits)
    try:
        schema = await source.schema()
        if not len(schema):
            raise SourceEmpty(source=shown)
    except BaseException:
        await source.close()
        raise
    return source


def _engine(spec: str, limits: Limits, demo_folder: Path | None) -> tuple[Engine, str]:
    if spec == DEMO:
        engine = SqliteEngine(spaceflight_database(demo_folder), DEMO, limits)
        engine.name = "spaceflight"
        return engine, DEMO
    path = Path(spec).expanduser()
    if not path.exists():
        raise SourceNotFound(source=spec)
    return SqliteEngine(path, spec, limits), spec
