"""The files of Longthread itself, to which no source leads: its store, its key, and the data folder as a whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from longthread.settings import DATABASE, EMBEDDED, POSTGRES, Settings
from longthread.store.endpoints import KEY_FILE

_BESIDE = ("", "-wal", "-shm", "-journal")
"""The ends of the names of a SQLite database's files."""
_Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """Folders and files, by what they are and not by their names.

    All that is in one of the `folders` is Longthread's. A `place` is no source itself, but people keep files of their
    own in it: what they upload, or a database next to the store.
    """

    folders: tuple[Path, ...]
    files: tuple[Path, ...] = ()
    places: tuple[Path, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> OwnFiles:
        """Return those of these settings."""
        kind, _, folder = settings.database.partition(":")
        data = settings.data_dir
        stores = [data / DATABASE] if "://" in settings.database or kind == EMBEDDED else [Path(settings.database)]
        beside = [file.with_name(file.name + end) for file in (*stores, data / DATABASE) for end in _BESIDE]
        folders = [data / POSTGRES, *([Path(folder)] if kind == EMBEDDED else [])]
        return cls(tuple(folders), (*beside, data / KEY_FILE), (data,))

    def holds(self, path: Path) -> bool:
        """Whether a path leads to one of them, by whatever name or link. Raises OSError: it leads nowhere."""
        found = path.stat()
        if _identity(found) in _identities((*self.files, *self.places)):
            return True
        own, real = _identities(self.folders), path.resolve()
        if any(above in own for above in _identities((real, *real.parents))):
            return True
        # A file of several names may have one of them among ours.
        return stat.S_ISREG(found.st_mode) and found.st_nlink > 1 and self._has_link(_identity(found))

    def _has_link(self, wanted: _Identity) -> bool:
        for top in self.folders:
            for folder, _, names in os.walk(top):
                if wanted in _identities(Path(folder, name) for name in names):
                    return True
        return False


def _identity(found: os.stat_result) -> _Identity:
    return found.st_dev, found.st_ino


def _identities(paths: Iterable[Path]) -> list[_Identity]:
    """What is at paths, in their order, without those where nothing is."""
    return [*_identify_files(paths)]


def _identify_files(paths: Iterable[Path]) -> Iterator[_Identity]:
    for path in paths:
        try:
            yield _identity(path.stat())
        except OSError:
            continue
