"""`longthread doctor`: what works here, and what to do about what does not.

What `longthread doctor --server URL` finds out about a server that runs.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import httpx
import typer
from rich.cells import set_cell_size
from rich.markup import escape

from longthread import __version__
from longthread.cli import options
from longthread.cli.language import say, translate, translate_note
from longthread.cli.terminal import Console
from longthread.cli.whole_store import count_noun, existing
from longthread.documentation import documentation
from longthread.errors import LongthreadError, StoreError
from longthread.llm.providers import window_setting
from longthread.settings import EMBEDDED, Settings
from longthread.store import endpoints, listing
from longthread.store.open import open_store, why_none

if TYPE_CHECKING:
    from longthread.llm.server_facts import ServerFacts

Finding = tuple[bool, str, str]
_SECONDS = 10.0
_CLOCK_SECONDS = 2.0
"""A difference of clocks that is reported: the `Date` of an answer is in whole seconds."""


async def server_findings(url: str) -> AsyncIterator[Finding]:
    """Yield what is found, the most basic first. Without an answer, that is all."""
    async with httpx.AsyncClient(base_url=url.rstrip("/"), timeout=_SECONDS) as client:
        try:
            info = await client.get("/api/info")
            told = info.json()
            found = say("{}: Longthread {}, model {}", url, told["version"], told["model"])
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            silent = "{} does not answer ({}). Does it run, and is that its URL?"
            yield False, "server", say(silent, url, type(error).__name__)
            return
        except (ValueError, KeyError, TypeError):
            other = "{} answers with {}, not as Longthread. {}"
            yield False, "server", say(other, url, info.status_code, _hint_at_proxy(info))
            return
        yield (
            told["version"] == __version__,
            "server",
            found if told["version"] == __version__ else _name_versions(found),
        )
        yield _check_clock(info)
        for name, check in (("ready", _check_ready), ("metrics", _check_metrics), ("stream", _check_stream)):
            try:
                yield await check(client)
            except (httpx.HTTPError, ValueError) as error:
                yield False, name, say("no answer ({})", type(error).__name__)


def _hint_at_proxy(answer: httpx.Response) -> str:
    if answer.status_code == 421:
        page = documentation("how-to/servers")
        return say("It does not go by that name: let the proxy forward its own `Host`, see {}.", translate(page))
    return say("Is there another server at that URL?")


def _name_versions(found: str) -> str:
    return say("{}; this is {}. Install the same version here and there.", found, __version__)


def _check_clock(answer: httpx.Response) -> Finding:
    date = answer.headers.get("date")
    if date is None:
        return True, "clock", say("the server does not tell its time")
    # The answer was written at a moment between both ends of the request.
    apart = (datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds()
    apart -= min(max(apart, 0.0), answer.elapsed.total_seconds() + 1)
    if abs(apart) < _CLOCK_SECONDS:
        return True, "clock", say("as here")
    told = "{:.0f} s behind this machine" if apart > 0 else "{:.0f} s ahead of this machine"
    return False, "clock", say(told, abs(apart))


async def _check_ready(client: httpx.AsyncClient) -> Finding:
    answer = await client.get("/ready")
    body = answer.json()
    status = str(body.get("status", answer.status_code))
    if answer.status_code == 200:
        return True, "ready", say("the store answers, in {:.0f} ms with the way", 1000 * answer.elapsed.total_seconds())
    return False, "ready", say("not ready: {}", body.get("detail") or status)


async def _check_metrics(client: httpx.AsyncClient) -> Finding:
    answer = await client.get("/metrics")
    if answer.status_code != 200:
        return True, "metrics", say("/metrics is not reached from here ({})", answer.status_code)
    names = {line.split(" ")[0]: float(line.split(" ")[1]) for line in answer.text.splitlines() if line[:1] != "#"}
    counts = [names.get(f"longthread_{name}", 0) for name in ("live_runs", "streams", "workers")]
    return True, "load", say("{:.0f} live runs, {:.0f} open streams, {:.0f} workers", *counts)


async def _check_stream(client: httpx.AsyncClient) -> Finding:
    """Whether events come one by one: they are sent a quarter of a second apart."""
    came: list[float] = []
    async with client.stream("GET", "/health/stream") as answer:
        if answer.status_code != 200:
            return False, "streams", say("the server answers with {}", answer.status_code)
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                came.append(time.monotonic())
    if len(came) > 1 and came[-1] - came[0] > 0.2:
        return True, "streams", say("events arrive one by one")
    together = "events arrive together: something in between buffers them. Switch that off, in nginx with "
    return False, "streams", say(together + "`proxy_buffering off`.")


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
        async for good, what, found in (
            check_installation(settings, probe=probe) if server is None else server_findings(server)
        ):
            healthy = healthy and good
            mark = "[green]✓[/green]" if good else "[red]✗[/red]"
            name = set_cell_size(say(what), 10)
            console.print(f"{mark} {name} {escape(translate(found))}", highlight=False, soft_wrap=True, emoji=False)
        return healthy

    raise typer.Exit(0 if asyncio.run(look()) else 1)


async def check_installation(settings: Settings, *, probe: bool = False) -> AsyncIterator[Finding]:
    yield True, "longthread", f"{__version__}, Python {sys.version.split()[0]}, {platform.system()}"
    yield True, "sqlite", sqlite3.sqlite_version
    yield await _check_store(settings)
    yield await _check_model(settings)
    if (spoken := await _check_protocol(settings, probe=probe)) is not None:
        yield spoken
    yield await _check_embedder(settings)
    yield await _check_source(settings)


async def _check_store(settings: Settings) -> Finding:
    if reason := await asyncio.to_thread(why_none, settings.database):
        where = settings.database.removeprefix(f"{EMBEDDED}:")
        return await asyncio.to_thread(_may_be_made, Path(where)), "store", f"{where}: {translate(reason)}"
    try:
        async with existing(settings) as store, store.reading() as tx:
            threads = await listing.list_threads(tx, user_id=settings.user, limit=1000)
            return (
                True,
                "store",
                f"{store.where}: " + say("{} of {}", count_noun(len(threads), "conversation"), settings.user),
            )
    except LongthreadError as error:
        return False, "store", str(error)


def _may_be_made(path: Path) -> bool:
    there = next(folder for folder in path.absolute().parents if folder.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


async def _check_model(settings: Settings) -> Finding:
    # Here and not above: LangChain takes seconds to load, and most commands need none of it.
    from longthread.llm.models import context_window, model_name, resolve_model
    from longthread.llm.server_facts import ask_server, is_listed

    name = model_name(None, settings)
    try:
        model = resolve_model(name, settings)
        facts = await ask_server(model)
    except LongthreadError as error:
        return False, "model", str(error)
    if facts is not None and (problem := _find_problem(facts, model.name, settings)):
        return False, "model", f"{name}: {translate(problem)}"
    told, limit = facts.window if facts is not None else None, settings.memory_context_window
    window = context_window(model, settings) if told is None else min(told.tokens, limit or told.tokens)
    notes = [say("{}: {:,} tokens of context", name, window)]
    listed = (facts.models or ()) if facts is not None else ()
    if len(listed) == 1 and not is_listed(model.name, listed):
        notes.append(say("its server lists {} alone, and may take any name for it", listed[0]))
    if told is not None and not told.is_loaded:
        loads = "{} has not loaded it, and may give it others: it is asked again at the first reply"
        notes.append(say(loads, told.server))
    elif limit and told is not None and told.tokens < limit:
        more = "its server has no more; to have all of MEMORY_CONTEXT_WINDOW ({:,}), raise {}"
        notes.append(say(more, limit, window_setting(told.server)))
    if not settings.model:
        notes.append(say("rule-based, needs no key. Set LONGTHREAD_MODEL for a real one"))
    return True, "model", say("; ").join(notes)


async def _check_protocol(settings: Settings, *, probe: bool) -> Finding | None:
    """Say how the model speaks, as a probe found; with `probe` it is asked now, and the store keeps it."""
    from longthread.llm.failures import ProviderError
    from longthread.llm.model_facts import probe_protocol
    from longthread.llm.models import DEMO, failure_reason, model_name, resolve_model

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
                return False, "protocol", say("{} replies at length, and was cut off. Choose with `--protocol`.", name)
            async with open_store(settings.database) as store, store.writing() as tx:
                await endpoints.save_protocol(tx, model.name, model.address, protocol)
            return (
                True,
                "protocol",
                say("{}, from now on wherever it is left to Longthread (`--protocol auto`)", protocol),
            )
        async with existing(settings) as store, store.reading() as tx:
            known = await endpoints.find_protocol(tx, model.name, model.address)
    except ProviderError as error:
        return False, "protocol", failure_reason(error, settings)
    except LongthreadError:
        known = None  # the lines above say what is wrong
    if known:
        return True, "protocol", say("{}, as a probe found", known)
    return True, "protocol", say("not probed: `longthread doctor --probe` finds how it speaks best")


def _find_problem(facts: ServerFacts, model: str, settings: Settings) -> str:
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
        others = say(", or use one of: {}", ", ".join(known[:10])) if known else ""
        return say("Ollama does not have it. Get it with `ollama pull {}`{}.", model, others)
    return ""


async def _check_embedder(settings: Settings) -> Finding:
    from longthread.llm.embedders import embedder_of
    from longthread.memory.embedder import QUERY_SECONDS, EmbedderFailed, made_by, name_embedder

    embedder = embedder_of(settings)
    if embedder is None:
        none = say("none: recall goes by keywords. Set MEMORY_EMBEDDING_MODEL for recall by meaning too")
        return True, "embedder", none
    started = again = time.monotonic()
    try:
        vector = await made_by(partial(embedder.query, "Does it work?"), _EMBEDDER_SECONDS)
        took, again = time.monotonic() - started, time.monotonic()
        if took > QUERY_SECONDS:  # it may have had to be loaded
            await made_by(partial(embedder.query, "And now?"), _EMBEDDER_SECONDS)
    except EmbedderFailed as error:
        reason = str(error)
        if not isinstance(error.cause, LongthreadError):  # such a one says itself what to do
            check = "{}. Check MEMORY_EMBEDDING_MODEL, MEMORY_EMBEDDING_BASE_URL and MEMORY_EMBEDDING_API_KEY."
            reason = say(check, reason.rstrip("."))
        return False, "embedder", say("{} does not work: {}", name_embedder(embedder), translate(reason))
    later = time.monotonic() - again
    if later > QUERY_SECONDS:
        slow = "{} is too slow: a text takes {:.1f} s; recall waits {:g} s for it and goes by keywords then."
        return False, "embedder", say(slow, name_embedder(embedder), later, QUERY_SECONDS)
    works = "{}: vectors of {:,} numbers, the first in {:.1f} s"
    return True, "embedder", say(works, name_embedder(embedder), vector.shape[-1], took)


async def _check_source(settings: Settings) -> Finding:
    from longthread.tools.analysis.open import open_source
    from longthread.tools.catalog.names import named_address
    from longthread.tools.own_files import OwnFiles

    if settings.source is None:
        return True, "source", say("none by default; give one with --source or LONGTHREAD_SOURCE")
    spec = settings.source
    try:
        with suppress(StoreError):  # there is no catalog then; what is wrong with the store is reported above
            async with existing(settings) as store:
                spec = await named_address(store, spec)
        async with await open_source(spec, own=OwnFiles.of(settings)) as source:
            schema = await source.schema()
            found = say("{}: {}, {}", source.spec, source.dialect, count_noun(len(schema.tables), "table"))
            notes = [translate_note(note) for note in source.notes]
            return True, "source", " ".join([say("{}.", found), *notes]) if notes else found
    except LongthreadError as error:
        return False, "source", str(error)
