"""Begins and ends the export to a collector, as the settings say. This module loads nothing of OpenTelemetry's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from longthread.settings import Settings

if TYPE_CHECKING:  # the extra `otel`
    from longthread.otel.providers import Export

FLUSH_SECONDS = 2.0
"""How long the end of a process waits at most for what is not sent yet."""
_logger = logging.getLogger(__name__)


class _Exported:
    """The export of this process, and who uses it."""

    def __init__(self) -> None:
        self.export: Export | None = None
        self.users = 0
        self.has_warned = False


_exported = _Exported()


@asynccontextmanager
async def exporting(settings: Settings) -> AsyncIterator[None]:
    """Send spans and metrics while the block runs, if a collector is set. Of several blocks at once the first one's
    settings hold."""
    if not settings.sends_telemetry:
        yield
        return
    if not _exported.users:
        _exported.export = _begin(settings)
    _exported.users += 1
    try:
        yield
    finally:
        _exported.users -= 1
        if not _exported.users and _exported.export is not None:
            export, _exported.export = _exported.export, None
            loop, ended = asyncio.get_running_loop(), asyncio.Event()
            export.stop(partial(loop.call_soon_threadsafe, ended.set))
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await ended.wait()


def _begin(settings: Settings) -> Export | None:
    try:
        from longthread.otel.providers import Export
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(("opentelemetry", "google", "requests")):
            raise
        if not _exported.has_warned:
            _exported.has_warned = True
            _logger.warning("OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is sent: pip install 'longthread[otel]'")
        return None
    try:
        return Export(settings)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a variable of the SDK's, runs go on
        _logger.warning("No traces and metrics are sent: %s: %s", type(error).__name__, error)
        return None
