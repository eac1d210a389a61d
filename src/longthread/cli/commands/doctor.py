"""`longthread doctor`: what works here, and what to do about what does not."""

from __future__ import annotations

import asyncio
import os
import platform
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from longthread import __version__
from longthread.cli import options
from longthread.cli.screen import Console
from longthread.cli.server_checks import Finding, server_findings
from longthread.cli.whole_store import existing
from longthread.errors import LongthreadError, StoreError
from longthread.llm.providers import window_setting
from longthread.settings import EMBEDDED, Settings
from longthread.store import log, windows
from longthread.store.open import open_store, why_none

if TYPE_CHECKING:
    from longthread.llm.server_facts import ServerFacts

ProbeOption = Annotated[
    bool, typer.Option("--probe", help="Ask the model up to four tiny questions, and keep how it speaks best.")
]
ServerOption = Annotated[str | None, typer.Option(help="Check the server at this URL instead.", metavar="URL")]
_EMBEDDER_SECONDS = 60.0
"""More than a question waits: a model of one's own may have to be loaded first."""


def doctor(
    source: options.SourceOption = None,
    model: options.Model = None,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
    server: ServerOption = None,
    probe: ProbeOption = False,
) -> None:
    """Check the store, the model, the embedder and the source; or a server that runs."""
    settings = Settings.load(source=source, model=model, database=database, read_only=read_only)
    console = Console()

    async def look() -> bool:
        healthy = True
        async for good, what, found in _findings(settings, probe=probe) if server is None else server_findings(server):
            healthy = healthy and good
            mark = "[green]✓[/green]" if good else "[red]✗[/red]"
            console.print(f"{mark} {what:10} {escape(found)}", highlight=False, soft_wrap=True, emoji=False)
        return healthy

    raise typer.Exit(0 if asyncio.run(look()) else 1)


async def _findings(settings: Settings, *, probe: bool = False) -> AsyncIterator[Finding]:
    yield True, "longthread", f"{__version__}, Python {sys.version.split()[0]}, {platform.system()}"
    yield True, "sqlite", sqlite3.sqlite_version
    yield await _store(settings)
    yield await _model(settings)
    if (spoken := await _protocol(settings, probe=probe)) is not None:
        yield spoken
    yield await _embedder(settings)
    yield await _source(settings)


async def _store(settings: Settings) -> Finding:
    if reason := await asyncio.to_thread(why_none, settings.database):
        where = settings.database.removeprefix(f"{EMBEDDED}:")
        return await asyncio.to_thread(_may_be_made, Path(where)), "store", f"{where}: {reason}"
    try:
        async with existing(settings) as store, store.reading() as tx:
            threads = await log.list_threads(tx, user_id=settings.user, limit=1000)
            return True, "store", f"{store.where}: {_count(len(threads), 'conversation')} of {settings.user}"
    except LongthreadError as error:
        return False, "store", str(error)


def _may_be_made(path: Path) -> bool:
    there = next(folder for folder in path.absolute().parents if folder.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


async def _model(settings: Settings) -> Finding:
    # Here and not above: LangChain takes seconds to load, and most commands need none of it.
    from longthread.llm.models import context_window, model_name, resolve_model
    from longthread.llm.server_facts import ask_server, is_listed

    name = model_name(None, settings)
    try:
        model = resolve_model(name, settings)
        facts = await ask_server(model)
    except LongthreadError as error:
        return False, "model", str(error)
    if facts is not None and (problem := _problem(facts, model.name, settings)):
        return False, "model", f"{name}: {problem}"
    told, limit = facts.window if facts is not None else None, settings.memory_context_window
    window = context_window(model, settings) if told is None else min(told.tokens, limit or told.tokens)
    notes = [f"{name}: {window:,} tokens of context"]
    listed = (facts.models or ()) if facts is not None else ()
    if len(listed) == 1 and not is_listed(model.name, listed):
        notes.append(f"its server lists {listed[0]} alone, and may take any name for it")
    if told is not None and not told.is_loaded:
        notes.append(f"{told.server} has not loaded it, and may give it others: it is asked again at the first reply")
    elif limit and told is not None and told.tokens < limit:
        more = f"to have all of MEMORY_CONTEXT_WINDOW ({limit:,}), raise {window_setting(told.server)}"
        notes.append(f"its server has no more; {more}")
    if not settings.model:
        notes.append("rule-based, needs no key. Set LONGTHREAD_MODEL for a real one")
    return True, "model", "; ".join(notes)


async def _protocol(settings: Settings, *, probe: bool) -> Finding | None:
    """Say how the model speaks, as a probe found; with `probe` it is asked now, and the store keeps it."""
    from longthread.llm.failures import ProviderError
    from longthread.llm.models import DEMO, failure_reason, model_name, resolve_model
    from longthread.llm.probe import probe_protocol

    name = model_name(None, settings)
    if name == DEMO:
        return None
    try:
        model = resolve_model(name, settings)
        if probe:
            try:
                protocol = await probe_protocol(model)
            finally:
                await model.close()
            if protocol is None:
                return False, "protocol", f"{name} replies at length, and was cut off. Choose with `--protocol`."
            async with open_store(settings.database) as store, store.writing() as tx:
                await windows.put_protocol(tx, model.name, model.address, protocol)
            return True, "protocol", f"{protocol}, from now on wherever it is left to Longthread (`--protocol auto`)"
        async with existing(settings) as store, store.reading() as tx:
            known = await windows.find_protocol(tx, model.name, model.address)
    except ProviderError as error:
        return False, "protocol", failure_reason(error, settings)
    except LongthreadError:
        known = None  # the lines above say what is wrong
    how = f"{known}, as a probe found" if known else "not probed: `longthread doctor --probe` finds how it speaks best"
    return True, "protocol", how


def _problem(facts: ServerFacts, model: str, settings: Settings) -> str:
    """Say what is wrong with a model's server, and what to do; empty if nothing is."""
    from longthread.llm.failures import ConnectionBroken, error_of
    from longthread.llm.models import failure_reason
    from longthread.llm.server_facts import is_listed

    if facts.status is None:
        return failure_reason(ConnectionBroken("no answer", address=facts.address), settings)
    if facts.status in (401, 403):
        return failure_reason(error_of(facts.status, f"{facts.address} answers {facts.status}."), settings)
    known = facts.models or ()
    # A server of one model takes any name for it, and a gateway knows more names than it lists.
    if facts.server == "Ollama" and not is_listed(model, known):
        others = f", or use one of: {', '.join(known[:10])}" if known else ""
        return f"Ollama does not have it. Get it with `ollama pull {model}`{others}."
    return ""


async def _embedder(settings: Settings) -> Finding:
    from longthread.llm.embedders import embedder_of
    from longthread.memory.embedders.embedder import EmbedderFailed, called, made_by
    from longthread.memory.embedders.question_vector import QUERY_SECONDS

    embedder = embedder_of(settings)
    if embedder is None:
        return True, "embedder", "none: recall goes by keywords. Set MEMORY_EMBEDDING_MODEL for recall by meaning too"
    started = again = time.monotonic()
    try:
        vector = await made_by(partial(embedder.query, "Does it work?"), _EMBEDDER_SECONDS)
        took, again = time.monotonic() - started, time.monotonic()
        if took > QUERY_SECONDS:  # it may have had to be loaded
            await made_by(partial(embedder.query, "And now?"), _EMBEDDER_SECONDS)
    except EmbedderFailed as error:
        reason = str(error)
        if not isinstance(error.cause, LongthreadError):  # such a one says itself what to do
            names = "MEMORY_EMBEDDING_MODEL, MEMORY_EMBEDDING_BASE_URL and MEMORY_EMBEDDING_API_KEY"
            reason = f"{reason.rstrip('.')}. Check {names}."
        return False, "embedder", f"{called(embedder)} does not work: {reason}"
    later = time.monotonic() - again
    if later > QUERY_SECONDS:
        waits = f"recall waits {QUERY_SECONDS:g} s for it and goes by keywords then"
        return False, "embedder", f"{called(embedder)} is too slow: a text takes {later:.1f} s; {waits}."
    return True, "embedder", f"{called(embedder)}: vectors of {vector.shape[-1]:,} numbers, the first in {took:.1f} s"


async def _source(settings: Settings) -> Finding:
    from longthread.tools.analysis.open import open_source
    from longthread.tools.catalog.source_address import named_address
    from longthread.tools.own_files import OwnFiles

    if settings.source is None:
        return True, "source", "none by default; give one with --source or LONGTHREAD_SOURCE"
    spec = settings.source
    try:
        with suppress(StoreError):  # there is no catalog then; what is wrong with the store is told above
            async with existing(settings) as store:
                spec = await named_address(store, spec)
        async with await open_source(spec, own=OwnFiles.of(settings)) as source:
            schema = await source.schema()
            found = f"{source.spec}: {source.dialect}, {_count(len(schema.tables), 'table')}"
            return True, "source", " ".join([f"{found}.", *source.notes]) if source.notes else found
    except LongthreadError as error:
        return False, "source", str(error)
