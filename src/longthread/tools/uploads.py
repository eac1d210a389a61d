"""Files that users have uploaded, each in a folder of its own.

The folder of a file that becomes a source moves below `sources`. So one upload is one source's, and no server deletes
it as old: servers with other stores may have the same data folder.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from longthread.errors import UploadFailed, UploadNotFound, UploadRefused, UploadTooLarge
from longthread.model.ids import new_id
from longthread.store.completion import to_the_end

SUFFIXES = (".csv", ".tsv", ".parquet", ".xlsx", ".json", ".jsonl", ".sqlite", ".sqlite3", ".db")
"""Of files that can be uploaded."""
_KEPT_SECONDS = 24 * 3600.0
"""How long a file stays that no source has."""
_LONGEST = 100
_ID = re.compile(r"[0-9a-f-]{36}")
_STRANGE = re.compile(r"[^\w-]+")
_PART = "incoming"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was uploaded whole."""

    id: str
    path: Path

    @property
    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size


class Uploads:
    """The uploads of one data folder, of `most` bytes each."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._sources = folder / "sources"
        self.most = most

    async def receive(self, name: str, pieces: AsyncIterator[bytes]) -> Upload:
        """Write a file as it comes. If that breaks off, in whatever way, nothing of it stays.

        Raises:
            UploadRefused: its name is not of a kind that can be read.
            UploadTooLarge: it has too many bytes.
            UploadFailed: the disk does not take it.
        """
        upload = Upload(new_id(), Path(safe_name(name)))
        folder = self._folder / upload.id
        whole = False
        try:
            await asyncio.to_thread(folder.mkdir, 0o700, True)
            await self._write(folder / _PART, pieces)
            await asyncio.to_thread((folder / _PART).rename, folder / upload.path)
            whole = True
        except OSError as error:
            raise UploadFailed(reason=f"{error.strerror or error}.") from error
        finally:
            if not whole:
                await to_the_end(asyncio.to_thread(shutil.rmtree, folder, True))
        return Upload(upload.id, folder / upload.path)

    async def _write(self, path: Path, pieces: AsyncIterator[bytes]) -> None:
        size = 0
        file: BinaryIO = await asyncio.to_thread(path.open, "xb")
        try:
            async for piece in pieces:
                size += len(piece)
                if size > self.most:
                    raise UploadTooLarge(limit=f"{self.most // 2**20:,}")
                await asyncio.to_thread(file.write, piece)
        finally:
            await to_the_end(asyncio.to_thread(file.close))
        if not size:
            raise UploadRefused(name=path.name, reason="it is empty.")

    async def find(self, upload_id: str, *, of_source: bool = False) -> Upload:
        """Return an upload that is no source, or, with `of_source`, one that is. Raises UploadNotFound."""
        if not _ID.fullmatch(upload_id):
            raise UploadNotFound(upload=upload_id[:50])
        found = await asyncio.to_thread(self._file, (self._sources if of_source else self._folder) / upload_id)
        if found is None:
            raise UploadNotFound(upload=upload_id)
        return Upload(upload_id, found)

    async def keep(self, upload: Upload) -> Upload:
        """Make an upload a source's; no sweep deletes it. Raises UploadNotFound: it is one already, or is gone."""
        await asyncio.to_thread(self._sources.mkdir, 0o700, exist_ok=True)
        return await self._moved(upload, self._sources)

    async def give_back(self, upload: Upload) -> Upload:
        """Make the file of a source an upload again. Raises UploadNotFound."""
        return await self._moved(upload, self._folder)

    @staticmethod
    async def _moved(upload: Upload, to: Path) -> Upload:
        try:
            await to_the_end(asyncio.to_thread(upload.path.parent.rename, to / upload.id))
        except OSError as error:
            raise UploadNotFound(upload=upload.id) from error
        return Upload(upload.id, to / upload.id / upload.path.name)

    async def discard(self, upload: Upload) -> None:
        """Delete an upload."""
        await to_the_end(asyncio.to_thread(shutil.rmtree, upload.path.parent, True))

    async def of_address(self, address: str) -> Upload | None:
        """Return the upload that a source's address names, if it is one."""
        path = Path(address)
        if path.parent.parent != self._sources or not _ID.fullmatch(path.parent.name):
            return None
        return Upload(path.parent.name, path)

    async def sweep(self) -> None:
        """Delete old uploads that have become no sources."""
        await asyncio.to_thread(self._sweep)

    def _sweep(self) -> None:
        old = time.time() - _KEPT_SECONDS
        for folder in self._folder.glob("*-*-*") if self._folder.is_dir() else ():
            if _ID.fullmatch(folder.name) and folder.stat().st_mtime < old:
                shutil.rmtree(folder, True)

    @staticmethod
    def _file(folder: Path) -> Path | None:
        files = [each for each in folder.iterdir() if each.name != _PART] if folder.is_dir() else []
        return files[0] if len(files) == 1 else None


def safe_name(name: str) -> str:
    """Return a file's name that means nothing to a file system or a source's address. Raises UploadRefused: its kind is
    none that can be read."""
    last = re.split(r"[/\\]", name)[-1]
    stem, dot, suffix = last.rpartition(".")
    suffix = f"{dot}{suffix.strip().lower()}"
    if suffix not in SUFFIXES or not dot:
        raise UploadRefused(name=last[:50], reason=f"its kind is none of {', '.join(SUFFIXES)}.")
    plain = _STRANGE.sub("_", stem).strip("_")[:_LONGEST]
    return f"{plain or 'data'}{suffix}"
