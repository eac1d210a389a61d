"""Files that users have uploaded, each in a folder of its own.

The folder of a file that becomes a source moves below `sources`. So one upload is one source's, and no server deletes
it as old: servers with other stores may have the same data folder. While its source is written or removed the folder
has a mark. One that is still marked a day later is deleted, unless a source of the store has it.

A source of data files is a folder in that one, so that files can be added to it: `sources/ID/sales.csv/sales.csv`. Its
name tells people and models what it is. A database is the file itself: `sources/ID/shop.sqlite`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from longthread.errors import LongthreadError, UploadFailed, UploadNotFound, UploadRefused, UploadTooLarge
from longthread.loop_bridge import to_the_end
from longthread.model.ids import new_id
from longthread.settings import Settings
from longthread.tools.analysis.address import is_url, parse_url
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.dialects.sqlite import DIALECT as SQLITE
from longthread.tools.analysis.files.listing import name_encoding, reader_of, recode_file
from longthread.tools.analysis.open import database_kind
from longthread.tools.upload_files import (
    UNFINISHED,
    are_equal,
    copy_all,
    copy_name,
    into_folder,
    joint_name,
    out_of_folder,
    plain,
    safe_name,
    take_place,
)

TEXT_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
"""The suffixes of files that have an encoding."""
_KEPT_SECONDS = 24 * 3600.0
"""How long a file stays that no source has."""
MOST_FILES = 100
"""Of one source."""
_ID = re.compile(r"[0-9a-f-]{36}")
_PART = "incoming"
"""The file while it comes; below `sources`, the mark."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was uploaded whole."""

    id: str
    path: Path

    @property
    def name(self) -> str:
        """What its source is called by default."""
        return plain(self.path.stem)

    @property
    def files(self) -> list[Path]:
        """Of a source its files, the first first; of any other upload the file itself."""
        try:
            found = [*self.path.iterdir()] if self.path.is_dir() else [self.path]
            return sorted(found, key=lambda each: (each.name != self.path.name, each.name))
        except OSError:  # it has just been removed
            return []

    @property
    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size


@dataclass(frozen=True, slots=True)
class Kept:
    """Uploads that became files of the source `upload`: from where each moved, and to where."""

    upload: Upload
    moved: tuple[tuple[Path, Path], ...] = ()


class Uploads:
    """The uploads of one data folder, of `most` bytes each."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._sources = folder / "sources"
        self.most = most

    async def receive(self, name: str, pieces: AsyncIterator[bytes], encoding: str | None = None) -> Upload:
        """Write a file as it comes. If that breaks off, in whatever way, nothing of it stays.

        Args:
            encoding: the codec of a file of text, which is then kept in UTF-8; None: each reader detects it.

        Raises:
            UploadRefused: its name is not of a kind that can be read, it is empty, a database of another kind, or not
                in that encoding.
            UploadTooLarge: it has too many bytes.
            UploadFailed: the disk does not take it.
        """
        upload = Upload(new_id(), Path(safe_name(name)))
        folder = self._folder / upload.id
        whole = False
        try:
            for each in (self._folder.parent, self._folder, folder):  # `parents` would make those for everybody
                await asyncio.to_thread(each.mkdir, 0o700, parents=True, exist_ok=True)
            if not await self._write(folder / _PART, pieces):
                raise UploadRefused(name=upload.path.name, reason="it is empty.")
            await asyncio.to_thread((folder / _PART).rename, folder / upload.path)
            await asyncio.to_thread(_expect_kind, folder / upload.path)
            if encoding is not None:
                await to_the_end(asyncio.to_thread(_to_utf8, folder / upload.path, encoding))
            whole = True
        except OSError as error:
            raise UploadFailed(reason=f"{error.strerror or error}.") from error
        finally:
            if not whole:
                await to_the_end(asyncio.to_thread(shutil.rmtree, folder, True))
        return Upload(upload.id, folder / upload.path)

    async def _write(self, path: Path, pieces: AsyncIterator[bytes]) -> int:
        """Return how many bytes it wrote."""
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
        return size

    async def find(self, upload_id: str, *, of_source: bool = False) -> Upload:
        """Return an upload that is no source, or, with `of_source`, one that is. Raises UploadNotFound."""
        if not _ID.fullmatch(upload_id):
            raise UploadNotFound(upload=upload_id[:50])
        found = await asyncio.to_thread(self._file, (self._sources if of_source else self._folder) / upload_id)
        if found is None:
            raise UploadNotFound(upload=upload_id)
        return Upload(upload_id, found)

    async def keep(self, uploads: Sequence[Upload]) -> Kept:
        """Make uploads the files of one source, marked until `settle`.

        Raises:
            UploadNotFound: one is a source's already, or is gone.
            UploadRefused: a database among several files.
        """
        first, *others = uploads
        if others:
            _expect_joinable(uploads)
        await asyncio.to_thread(self._sources.mkdir, 0o700, exist_ok=True)
        await self.unsettle(first)
        kept = await self._move_upload(first, self._sources)
        if not _is_data(first.path):
            return Kept(kept)
        folder = kept.path.with_name(joint_name([each.path.name for each in uploads]))
        made = Kept(Upload(first.id, folder))
        try:
            await to_the_end(asyncio.to_thread(into_folder, kept.path, folder))
        except OSError as error:
            await self.settle(await self._move_upload(kept, self._folder))
            raise UploadFailed(reason=f"{error.strerror or error}.") from error
        if not others:
            return made
        try:
            return await self.add(made.upload, others)
        except LongthreadError:
            await self.give_back(made)
            raise

    async def add(self, to: Upload, uploads: Sequence[Upload]) -> Kept:
        """Move uploads into a source's folder. One whose name is taken there gets a number. All move, or none.

        Raises:
            UploadNotFound: one is a source's already, or is gone.
            UploadRefused: a database, or the source takes no files, or no more.
            UploadFailed: the disk does not take it.
        """
        _expect_joinable(uploads)
        if not await asyncio.to_thread(to.path.is_dir):
            reason = f"{to.path.name} takes no other files. Add it as a source of its own."
            raise UploadRefused(name=uploads[0].path.name, reason=reason)
        _expect_room(len(to.files) + len(uploads), uploads[0])
        moved: list[tuple[Path, Path]] = []
        try:
            for each in uploads:
                moved.append((each.path, await to_the_end(asyncio.to_thread(_move_into, to, each))))
            _expect_room(len(to.files), uploads[0])  # another request may have added files at the same time
        except LongthreadError:
            await self._move_back(moved)
            raise
        return Kept(to, tuple(moved))

    async def give_back(self, kept: Kept) -> None:
        """Make files uploads again that `keep` has made a source's. Raises UploadNotFound."""
        await self._move_back(kept.moved)
        path = kept.upload.path
        if path.is_dir() and (files := kept.upload.files):
            await to_the_end(asyncio.to_thread(out_of_folder, path, files[0].name))
        await self.settle(await self._move_upload(kept.upload, self._folder))

    async def take_out(self, kept: Kept) -> None:
        """Make files uploads again that `add` has moved into a source."""
        await self._move_back(kept.moved)

    @staticmethod
    async def _move_back(moved: Iterable[tuple[Path, Path]]) -> None:
        for before, now in moved:
            await to_the_end(asyncio.to_thread(now.rename, before))

    async def settle(self, upload: Upload) -> None:
        """Take the mark away: the file has its place, and no sweep deletes it for the mark."""
        await to_the_end(asyncio.to_thread(upload.path.with_name(_PART).unlink, missing_ok=True))

    async def unsettle(self, upload: Upload) -> None:
        """Mark a file whose source is about to be written or removed. Raises UploadNotFound."""
        try:
            await to_the_end(asyncio.to_thread(upload.path.with_name(_PART).touch))
        except OSError as error:
            raise UploadNotFound(upload=upload.id) from error

    @staticmethod
    async def _move_upload(upload: Upload, to: Path) -> Upload:
        try:
            await to_the_end(asyncio.to_thread(upload.path.parent.rename, to / upload.id))
        except OSError as error:
            raise UploadNotFound(upload=upload.id) from error
        return Upload(upload.id, to / upload.id / upload.path.name)

    async def discard(self, upload: Upload) -> None:
        """Delete an upload."""
        await to_the_end(asyncio.to_thread(shutil.rmtree, upload.path.parent, True))

    @staticmethod
    async def received_at(file: Path) -> datetime | None:
        """When a file came; None: it is gone."""
        try:
            return datetime.fromtimestamp((await asyncio.to_thread(file.stat)).st_mtime, UTC)
        except OSError:
            return None

    async def stage(self, old: Upload, file: Path, new: Upload) -> Upload | None:
        """Return a source as it will be with an upload in the place of its `file`, to try whether it opens. It is
        deleted with the upload; None: the source has no other file.

        Raises:
            UploadNotFound: the source and its files have just been removed.
            UploadFailed: the disk does not take it.
        """
        others = [each for each in old.files if each != file]
        if not others:
            return None
        folder = new.path.with_name(UNFINISHED) / old.path.name
        files = {new.path: file.name, **{each: each.name for each in others}}
        try:
            await to_the_end(asyncio.to_thread(copy_all, files, folder))
        except FileNotFoundError as error:
            raise UploadNotFound(upload=old.id) from error
        except OSError as error:
            raise UploadFailed(reason=f"{error.strerror or error}.") from error
        return Upload(new.id, folder)

    async def replace(self, old: Upload, file: Path, new: Upload) -> Upload:
        """Put an upload in the place of a `file` of a source, whose address stays. What reads the old file reads it to
        the end, and then the system removes it.

        Raises:
            UploadNotFound: the source and its file have just been removed.
            UploadFailed: the disk does not take it.
        """
        try:
            await to_the_end(asyncio.to_thread(new.path.replace, file))
        except FileNotFoundError as error:
            raise UploadNotFound(upload=old.id) from error
        except OSError as error:
            raise UploadFailed(reason=f"{error.strerror or error}.") from error
        await self.discard(new)
        return old

    async def of_address(self, address: str) -> Upload | None:
        """Return the upload that a source's address names, if it is one."""
        path = Path(address)
        if path.parent.parent != self._sources or not _ID.fullmatch(path.parent.name):
            return None
        return Upload(path.parent.name, path)

    def of_addresses(self, addresses: Iterable[str]) -> set[str]:
        """The ids of the uploads that sources of these addresses read."""
        below = (self._below(each) for each in addresses)
        return {part for path in below if path is not None for part in path.parts if _ID.fullmatch(part)}

    @classmethod
    def of(cls, settings: Settings) -> Uploads:
        """The uploads of these settings."""
        return cls(settings.data_dir.absolute() / "uploads", settings.max_upload_mb * 2**20)

    def holds(self, address: str) -> bool:
        """Whether an address leads to an uploaded file, or to a folder of such."""
        return self._below(address) is not None

    def folders_of(self, address: str) -> tuple[str, ...]:
        """The folder of an uploaded file, as its address writes it, and as it is; none for any other address."""
        if is_url(address) or not self.holds(address):
            return ()
        path = Path(address).expanduser()
        return tuple({f"{each}{os.sep}": None for each in (path.absolute().parent, path.resolve().parent)})

    def _below(self, address: str) -> Path | None:
        """The path of an address below the folder of all uploads, if it leads there."""
        path = (parse_url(address).database or "") if is_url(address) else address
        try:
            found = Path(path).expanduser().resolve()
        except (OSError, ValueError, RuntimeError):  # nothing that is there
            return None
        folder = self._folder.resolve()
        return found.relative_to(folder) if found.is_relative_to(folder) else None

    async def sweep(self, used: Collection[str]) -> list[str]:
        """Delete old uploads that have become no sources, and return their ids. `used` are the ids of the uploads that
        the store's sources have."""
        return await asyncio.to_thread(self._sweep, used)

    def _sweep(self, used: Collection[str]) -> list[str]:
        deleted: list[str] = []
        marks = ((folder, folder / _PART) for folder in self._sources.glob("*-*-*"))
        pending = ((folder, folder) for folder in self._folder.glob("*-*-*"))
        for folder, since in (*pending, *((folder, mark) for folder, mark in marks if mark.exists())):
            if not _ID.fullmatch(folder.name) or not _is_old(since):
                continue
            if folder.name not in used:
                shutil.rmtree(folder, True)
                deleted.append(folder.name)
            elif since != folder:
                since.unlink(missing_ok=True)
        return deleted

    @staticmethod
    def _file(folder: Path) -> Path | None:
        try:
            files = [each for each in folder.iterdir() if each.name != _PART]
        except (FileNotFoundError, NotADirectoryError):  # another request may have just moved it
            return None
        return files[0] if len(files) == 1 else None


def _is_data(path: Path) -> bool:
    """Whether a file is one of several that a source may have: a database is a source of its own."""
    return reader_of(path) is not None


def _expect_joinable(uploads: Iterable[Upload]) -> None:
    """Raise UploadRefused for a database."""
    for each in uploads:
        if not _is_data(each.path):
            reason = "a database is asked alone. Add it as a source of its own."
            raise UploadRefused(name=each.path.name, reason=reason)


def _expect_room(files: int, upload: Upload) -> None:
    """Raise UploadRefused if a source would have too many files."""
    if files > MOST_FILES:
        reason = f"a source has at most {MOST_FILES} files. Put them into a folder of the server, and add that."
        raise UploadRefused(name=upload.path.name, reason=reason)


def _move_into(to: Upload, upload: Upload) -> Path:
    """Move an upload into a source's folder. Return its place, which no other file has had. Raises UploadNotFound,
    UploadFailed."""
    name = upload.path.name
    taken: list[str] = []
    try:
        while True:
            taken += [file.name for file in to.files]
            is_taken = any(are_equal(name, each) for each in taken)
            place = to.path / (copy_name(name, taken, ()) if is_taken else name)
            try:
                take_place(upload.path, place)
                return place
            except FileExistsError:  # another request, or another server, was faster
                taken.append(place.name)
    except FileNotFoundError as error:
        raise UploadNotFound(upload=upload.id) from error
    except OSError as error:
        raise UploadFailed(reason=f"{error.strerror or error}.") from error


def _expect_kind(path: Path) -> None:
    """Refuse a database that is not of the kind that its name says: who sees CSV does not expect its views to run.
    Raises UploadRefused."""
    kind = database_kind(path)
    if kind not in (None, SQLITE.name):
        title = find_dialect(kind or "").title
        reason = f"it is a {title} database. Put it where the server runs, and add it by its path."
        raise UploadRefused(name=path.name, reason=reason)
    if kind is not None and reader_of(path):
        raise UploadRefused(name=path.name, reason=f"it is a SQLite database. Name it {path.stem}.sqlite.")


def _to_utf8(path: Path, encoding: str) -> None:
    """Rewrite a file of text in UTF-8. Raises UploadRefused."""
    if path.suffix not in TEXT_SUFFIXES:
        reason = f"a {path.suffix} file has no encoding to choose: only {', '.join(TEXT_SUFFIXES)} do."
        raise UploadRefused(name=path.name, reason=reason)
    made, codec = path.with_name(_PART), "utf-8-sig" if encoding == "utf-8" else encoding  # a mark is not of the text
    if not recode_file(
        path, made, codec, to="utf-8-sig"
    ):  # with a mark: a setting may name the encoding of other files
        reason = f"it is not {name_encoding(encoding)}. Choose another encoding, or none, and it is found out."
        raise UploadRefused(name=path.name, reason=reason)
    made.replace(path)


def _is_old(path: Path) -> bool:
    try:
        return path.stat().st_mtime < time.time() - _KEPT_SECONDS
    except OSError:  # another server has deleted it
        return False
