"""Opens a source from its spec."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import replace
from pathlib import Path

from sqlglot.dialects.dialect import Dialect

from longthread.errors import (
    ExtraMissing,
    LongthreadError,
    PluginFailed,
    SourceEmpty,
    SourceIsStore,
    SourceNotFound,
    SourceUnreadable,
    SourceUnsupported,
)
from longthread.errors.base import convert_errors
from longthread.extras import DEMO_PACKAGE
from longthread.plugins import CORE, describe_error, expect_fields, plugins
from longthread.tools.analysis.address import (
    SourceUrl,
    absolute,
    is_offered,
    is_url,
    normalize_spec,
    parse_url,
    redact_spec,
    scrub_message,
    secrets_of,
)
from longthread.tools.analysis.dialects.dialect import find_dialect, find_scheme, list_sources, load_dialects
from longthread.tools.analysis.dialects.duckdb import DIALECT as DUCKDB
from longthread.tools.analysis.dialects.sqlite import DIALECT as SQLITE
from longthread.tools.analysis.engine import Engine
from longthread.tools.analysis.engines.sqlite import is_sqlite
from longthread.tools.analysis.files.listing import KINDS, data_files, find_codec, left_out, reader_of, unread_sheet
from longthread.tools.analysis.isolation.remote import IdleWorkers, WorkerEngine
from longthread.tools.analysis.isolation.worker import DATA_FILES, engine_class
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.source import Source, without
from longthread.tools.analysis.user_policy import UserPolicy
from longthread.tools.own_files import OwnFiles

_HEAD = 16
"""Bytes at the beginning of a file, which hold the mark of any database."""
_LISTED = 3
"""Files of a folder without tables that an error lists."""
_ENCODED = re.compile(r"(.+)\?encoding=([\w.-]*)")


async def open_source(
    spec: str,
    *,
    limits: Limits | None = None,
    policy: UserPolicy | None = None,
    idle: IdleWorkers | None = None,
    user: str = "",
    hidden: tuple[str, ...] = (),
    own: OwnFiles | None = None,
) -> Source:
    """Open a plugin's source such as `demo`, a database file, a data file, a folder of data files or a database URL,
    read-only. After the path of data files `?encoding=NAME` names the encoding of texts.

    A worker of `idle` that the same `user` had for the same data is used again. No error and no listing says the
    folders `hidden`. Longthread's `own` files, and every database that holds a store, are refused with SourceIsStore. A
    `policy` limits what statements read; raises PolicyUnusable: it names what is not there. Raises SourceNotFound,
    SourceUnreadable, SourceUnsupported, SourceUnreachable, SourceEmpty, SourceLocked, SourceTimeout, ExtraMissing,
    PluginFailed; none of them shows a password.
    """
    limits, spec = limits or Limits(), spec.strip()
    with _engine_errors(spec, hidden):
        engine, name = await asyncio.to_thread(_engine, spec, limits, own)
        _expect_engine(engine)
        if own is not None:
            engine.refuse(own)
        if idle is not None and isinstance(engine, WorkerEngine):
            engine.share(idle, user)
        async with AsyncExitStack() as undoing:
            source = Source(name, engine, limits, policy, hidden)
            undoing.push_async_callback(source.close)
            if not len(await source.schema()):
                raise SourceEmpty(source=name)
            undoing.pop_all()
    return source


def _engine_errors(spec: str, hidden: tuple[str, ...]) -> AbstractContextManager[None]:
    """Raise PluginFailed for whatever the engine of a plugin raises while a source is opened, without its secrets."""
    url = parse_url(spec) if is_url(spec) else None
    offer = plugins().find("engines", url.kind.lower()) if url is not None else None
    if url is None or offer is None or offer.plugin == CORE:
        return nullcontext()

    def convert(error: Exception) -> PluginFailed:
        cause = scrub_message(without(describe_error(error), hidden), secrets_of(url))
        return PluginFailed(plugin=offer.plugin, reason=f"its engine {url.kind} cannot open a database. {cause}")

    return convert_errors(convert)


def _expect_engine(engine: object) -> None:
    """Raise TypeError for what is no engine, and ValueError for one of a dialect that sqlglot lacks."""
    if not isinstance(engine, Engine):
        raise TypeError(f"{type(engine).__name__} is no Engine: open_server and load_file_engine must give one")
    expect_fields(engine, {"name": str, "dialect": str})
    Dialect.get_or_raise(find_dialect(engine.dialect).sqlglot)


def _engine(spec: str, limits: Limits, own: OwnFiles | None) -> tuple[Engine, str]:
    if is_offered(spec):
        return _create_offered_engine(spec, limits), spec
    if is_url(spec):
        # Without its password: a thread stores its source.
        stored = normalize_spec(spec)
        return _engine_of_url(absolute(parse_url(spec)), stored, limits, own), stored
    if not spec:
        raise SourceNotFound(source="(nothing)")
    try:
        # Absolute: the thread may be opened from another folder later.
        path = Path(spec).expanduser().absolute()
        stored = str(path)
        if not path.exists() and (encoded := _ENCODED.fullmatch(stored)):
            path, limits = Path(encoded[1]), replace(limits, encoding=find_codec(encoded[2]))
        if not path.exists():
            raise SourceNotFound(source=redact_spec(spec)[:200])
        _refuse_own(path, stored, own)
        return _engine_of_path(path, stored, limits), stored
    except PermissionError as error:
        raise SourceUnreadable(source=spec, reason="permission denied.") from error
    except (OSError, ValueError, RuntimeError) as error:  # a name too long for a path, or one with a NUL in it
        raise SourceNotFound(source=redact_spec(spec[:200])) from error


def _create_offered_engine(spec: str, limits: Limits) -> Engine:
    """Return the engine of a plugin's database file."""
    title, path = _find_offered_file(spec)
    engine = _create_embedded_engine(database_kind(path) or SQLITE.name, path, spec, limits)
    engine.name = title
    return engine


def _find_offered_file(spec: str) -> tuple[str, Path]:
    """Return the title and the file of a plugin's source. Raises ExtraMissing; PluginFailed: it gives none."""
    offer = plugins().find("sources", spec)
    if offer is None:
        raise plugins().find_failure(DEMO_PACKAGE) or ExtraMissing(
            what="The demo", package=DEMO_PACKAGE, extra=DEMO_PACKAGE
        )
    find_source = offer.load()
    try:
        title, path = find_source()
        found = Path(path)
    except LongthreadError:
        raise
    except (Exception, SystemExit) as error:
        reason = f"its source {spec} gives no title and path of a database file. {describe_error(error)}"
        raise PluginFailed(plugin=offer.plugin, reason=reason) from error
    if not found.is_file():
        raise PluginFailed(plugin=offer.plugin, reason=f"its source {spec} is in {found}, where no file is.")
    return str(title), found


def _create_embedded_engine(kind: str, path: Path, spec: str, limits: Limits) -> Engine:
    """An embedded engine, in a worker where the system can fork."""
    if limits.isolated and hasattr(os, "fork"):
        return WorkerEngine(kind, path, spec, limits)
    return engine_class(kind)(path, spec, limits)


def _refuse_own(path: Path, spec: str, own: OwnFiles | None) -> None:
    """Raise SourceIsStore for a file of Longthread's own, or a folder that has one among its data files."""
    files = data_files(path) if path.is_dir() else []
    if own is not None and any(own.holds(each) for each in (path, *files)):
        raise SourceIsStore(source=spec)


def _engine_of_url(url: SourceUrl, spec: str, limits: Limits, own: OwnFiles | None) -> Engine:
    kind = url.kind.lower()
    dialect = find_scheme(kind)
    if dialect is None:
        *others, last = list_sources()
        reason = f"Longthread has no driver for {kind}:// URLs; it speaks {', '.join(others)} and {last}."
        raise SourceUnsupported(source=spec, reason=reason)
    if not dialect.is_file:
        return dialect.open_server(url, spec, limits)
    if not url.database or url.database == ":memory:":
        raise SourceEmpty(source=spec)
    path = Path(url.database).expanduser()
    if not path.exists():
        raise SourceNotFound(source=spec)
    _refuse_own(path, spec, own)
    # DuckDB would read a SQLite file too, without asking whether it is a store.
    return _create_embedded_engine(SQLITE.name if is_sqlite(path) else dialect.name, path, spec, limits)


def _engine_of_path(path: Path, spec: str, limits: Limits) -> Engine:
    if path.is_dir():
        if not data_files(path):
            reason = f"the folder has no data files ({KINDS}). Give one that has, or a database file itself."
            raise SourceUnreadable(source=spec, reason=" ".join([reason, *left_out(path)[:_LISTED]]))
        return _create_embedded_engine(DATA_FILES, path, spec, limits)
    if not path.is_file():
        raise SourceUnreadable(source=spec, reason="it is neither a file nor a folder.")
    if (kind := database_kind(path)) is not None:
        return _create_embedded_engine(kind, path, spec, limits)
    if (unread := unread_sheet(path)) is not None:
        raise SourceUnsupported(source=spec, reason=unread)
    if reader_of(path):
        return _create_embedded_engine(DATA_FILES, path, spec, limits)
    reason = f"its kind is not known. Longthread reads SQLite and DuckDB databases, {KINDS} files."
    raise SourceUnsupported(source=spec, reason=reason)


def database_kind(path: Path) -> str | None:
    """The kind of database that a file is, by content or else by name; None for any other file."""
    # SQLite first: only other files may be opened by other means.
    if is_sqlite(path):
        return SQLITE.name
    suffix, files = path.suffix.lower(), [each for each in load_dialects() if each.is_file]
    for each in files:
        if suffix in each.suffixes and each is not SQLITE:
            return each.name
    with path.open("rb") as file:
        head = file.read(_HEAD)
    for each in files:
        if head.startswith(each.magic, each.magic_offset):
            return each.name
    return SQLITE.name if suffix in SQLITE.suffixes else None


def dialect_of(spec: str) -> str:
    """The dialect of a source, as far as its address implies it."""
    kind = spec.split(":", 1)[0].split("+", 1)[0].lower() if is_url(spec) else ""
    if kind:
        dialect = find_scheme(kind)
        return kind if dialect is None else dialect.name
    path = _find_offered_file(spec)[1] if is_offered(spec) else Path(spec).expanduser()
    try:
        found = database_kind(path) if path.is_file() else None
    except OSError:
        found = None
    if found is None and not path.exists():
        found = SQLITE.name if path.suffix.lower() in SQLITE.suffixes else None
    return found or DUCKDB.name
