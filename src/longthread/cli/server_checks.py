"""What `longthread doctor --server URL` finds out about a server that runs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from longthread import __version__
from longthread.cli.language import say

Finding = tuple[bool, str, str]
_SECONDS = 10.0
_CLOCK_SECONDS = 2.0
"""A difference of clocks that is told: the `Date` of an answer is in whole seconds."""


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
            yield False, "server", say(other, url, info.status_code, say(_hint(info)))
            return
        yield told["version"] == __version__, "server", found if told["version"] == __version__ else _other(found)
        yield _clock(info)
        for check in (_ready, _metrics, _stream):
            try:
                yield await check(client)
            except (httpx.HTTPError, ValueError) as error:
                yield False, check.__name__.strip("_"), say("no answer ({})", type(error).__name__)


def _hint(answer: httpx.Response) -> str:
    if answer.status_code == 421:
        return "It does not go by that name: let the proxy forward its own `Host`, see docs/how-to/servers.md."
    return "Is there another server at that URL?"


def _other(found: str) -> str:
    return say("{}; this is {}. Install the same version here and there.", found, __version__)


def _clock(answer: httpx.Response) -> Finding:
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


async def _ready(client: httpx.AsyncClient) -> Finding:
    answer = await client.get("/ready")
    body = answer.json()
    status = str(body.get("status", answer.status_code))
    if answer.status_code == 200:
        return True, "ready", say("the store answers, in {:.0f} ms with the way", 1000 * answer.elapsed.total_seconds())
    return False, "ready", say("not ready: {}", body.get("detail") or status)


async def _metrics(client: httpx.AsyncClient) -> Finding:
    answer = await client.get("/metrics")
    if answer.status_code != 200:
        return True, "metrics", say("/metrics is not reached from here ({})", answer.status_code)
    names = {line.split(" ")[0]: float(line.split(" ")[1]) for line in answer.text.splitlines() if line[:1] != "#"}
    counts = [names.get(f"longthread_{name}", 0) for name in ("live_runs", "streams", "workers")]
    return True, "load", say("{:.0f} live runs, {:.0f} open streams, {:.0f} workers", *counts)


async def _stream(client: httpx.AsyncClient) -> Finding:
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
