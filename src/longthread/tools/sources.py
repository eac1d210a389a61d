"""Opens sources for users, with limits and policies, and previews what a source holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longthread.errors import SourceError, SqlTimeout
from longthread.loop_bridge import to_the_end
from longthread.settings import Settings
from longthread.tools.analysis.files.listing import find_codec
from longthread.tools.analysis.isolation.remote import IdleWorkers
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.schema import Column, Table
from longthread.tools.analysis.source import Source, hide_folders
from longthread.tools.analysis.toolbox import sample
from longthread.tools.own_files import OwnFiles
from longthread.tools.uploads import Uploads

if TYPE_CHECKING:
    from longthread.access.principal import Principal
    from longthread.tools.analysis.user_policy import Policies


class Opener:
    """Opens sources with the settings' limits and policies. Raises PoliciesInvalid; InvalidInput: unknown encoding.

    Close it: processes that have run queries wait in it for the next source.
    """

    def __init__(self, settings: Settings) -> None:
        self._policies = _policies(settings.source_policies) if settings.source_policies else None
        self._limits = Limits(
            seconds=settings.sql_timeout,
            open_seconds=settings.source_timeout,
            rows=settings.sql_rows,
            memory_mb=settings.sql_memory_mb,
            isolated=settings.sql_isolated,
            encoding=find_codec(settings.file_encoding) if settings.file_encoding else "",
        )
        self._idle = IdleWorkers(settings.sql_idle_workers)
        self._uploads = Uploads.of(settings)
        self._own = OwnFiles.of(settings)

    @property
    def named_users(self) -> frozenset[str]:
        """The users whom policies name."""
        return self._policies.names if self._policies is not None else frozenset()

    async def open(self, spec: str, user_id: str, person: Principal | None = None) -> Source:
        """Open a source for a user; the caller closes it. Raises SourceError. Of an uploaded file, the source and its
        errors show the name, and not where this server keeps it. Policies name a `person` who has logged in, and the
        person's groups."""
        policy = None
        if self._policies is not None:
            whose = (user_id, None) if person is None else (person.name, person.group_names)
            policy = self._policies.of(spec, *whose)
        hidden = self._uploads.folders_of(spec)
        try:
            return await open_source(
                spec,
                limits=self._limits,
                policy=policy,
                idle=self._idle,
                user=user_id,
                hidden=hidden,
                own=self._own,
            )
        except SourceError as error:
            raise hide_folders(error, hidden) from error.__cause__

    async def close(self) -> None:
        """Ends the processes that wait. Those of sources that are open end with these."""
        await to_the_end(asyncio.to_thread(self._idle.close))


def _policies(path: Path) -> Policies:
    from longthread.tools.analysis.user_policy import Policies  # here: most have none

    return Policies.read(path)


class RunSources:
    """The open sources of one run: its `own`, and those of the catalog, which `opening` opens by name."""

    def __init__(self, own: Source | None, opening: Callable[[str], Awaitable[Source]]) -> None:
        self.own = own
        self._opening = opening
        self._opened: dict[str, Source] = {}
        self._lock = asyncio.Lock()

    async def open_named(self, name: str) -> Source:
        """A source of the catalog, opened on first use. Raises SourceError, DefinitionNotFound."""
        async with self._lock:
            if name not in self._opened:
                self._opened[name] = await self._opening(name)
            return self._opened[name]

    async def close(self) -> None:
        """Closes all sources, even if the awaiting task is cancelled."""
        await to_the_end(self._close())

    async def _close(self) -> None:
        for source in (*([self.own] if self.own is not None else []), *self._opened.values()):
            await source.close()


TABLES, ROWS = 20, 5
"""How many tables are shown with rows, and how many rows of each."""


@dataclass(frozen=True, slots=True)
class TablePreview:
    """A table. `rows` are its first ones; `problem` says why they cannot be read."""

    table: Table
    rows: Sequence[Sequence[Any]] = ()
    problem: str | None = None

    @property
    def columns(self) -> Sequence[Column]:
        return self.table.columns


async def preview(source: Source) -> list[TablePreview]:
    """Return the first tables of a source. Once one of them takes too long, no rows of others are read. Raises
    SourceError: it cannot be read at all."""
    made: list[TablePreview] = []
    slow: str | None = None
    for table in list((await source.schema()).tables.values())[:TABLES]:
        if slow is not None:
            made.append(TablePreview(table, problem=slow))
            continue
        observed = await sample(source, table.label, ROWS)
        if observed["ok"]:
            made.append(TablePreview(table, observed["data"]["rows"]))
            continue
        made.append(TablePreview(table, problem=observed["error"]["message"]))
        slow = made[-1].problem if observed["error"]["type"] == SqlTimeout.code else None
    return made
