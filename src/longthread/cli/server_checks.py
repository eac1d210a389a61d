"""What `longthread doctor --server URL` finds out about a server that runs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from longthread import __version__

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
            found = f"{url}: Longthread {told['version']}, model {told['model']}"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            yield False, "server", f"{url} does not answer ({type(error).__name__}). Does it run, and is that its URL?"
            return
        except (ValueError, KeyError, TypeError):
            yield False, "server", f"{url} answers with {info.status_code}, not as Longthread. {_hint(info)}".strip()
            return
        yield told["version"] == __version__, "server", found if told["version"] == __version__ else _other(found)
        yield _clock(info)
        for check in (_ready, _metrics, _stream):
            try:
                yield await check(client)
            except (httpx.HTTPError, ValueError) as error:
                yield False, check.__name__.strip("_"), f"no answer ({type(error).__name__})"


def _hint(answer: httpx.Response) -> str:
    if answer.status_code == 421:
        return "It does not go by that name: let the proxy forward its own `Host`, see docs/how-to/servers.md."
    return "Is there another server at that URL?"


def _other(found: str) -> str:
    return f"{found}; this is {__version__}. Install the same version here and there."


def _clock(answer: httpx.Response) -> Finding:
    date = answer.headers.get("date")
    if date is None:
        return True, "clock", "the server does not tell its time"
    # The answer was written at a moment between both ends of the request.
    apart = (datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds()
    apart -= min(max(apart, 0.0), answer.elapsed.total_seconds() + 1)
    good = abs(apart) < _CLOCK_SECONDS
    return (
        good,
        "clock",
        "as here" if good else f"{abs(apart):.0f} s {'behind' if apart > 0 else 'ahead of'} this machine",
    )


async def _ready(client: httpx.AsyncClient) -> Finding:
    answer = await client.get("/ready")
    body = answer.json()
    status = str(body.get("status", answer.status_code))
    if answer.status_code == 200:
        return True, "ready", f"the store answers, in {1000 * answer.elapsed.total_seconds():.0f} ms with the way"
    return False, "ready", f"not ready: {body.get('detail') or status}"


async def _metrics(client: httpx.AsyncClient) -> Finding:
    answer = await client.get("/metrics")
    if answer.status_code != 200:
        return True, "metrics", f"/metrics is not reached from here ({answer.status_code})"
    names = {line.split(" ")[0]: float(line.split(" ")[1]) for line in answer.text.splitlines() if line[:1] != "#"}
    told = {"live runs": "longthread_live_runs", "open streams": "longthread_streams", "workers": "longthread_workers"}
    return True, "load", ", ".join(f"{names.get(name, 0):.0f} {text}" for text, name in told.items())


async def _stream(client: httpx.AsyncClient) -> Finding:
    """Whether events come one by one: they are sent a quarter of a second apart."""
    came: list[float] = []
    async with client.stream("GET", "/health/stream") as answer:
        if answer.status_code != 200:
            return False, "streams", f"the server answers with {answer.status_code}"
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                came.append(time.monotonic())
    if len(came) > 1 and came[-1] - came[0] > 0.2:
        return True, "streams", "events arrive one by one"
    fix = "Switch that off, in nginx with `proxy_buffering off`."
    return False, "streams", f"events arrive together: something in between buffers them. {fix}"
