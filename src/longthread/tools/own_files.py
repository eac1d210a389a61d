"""The files of Longthread itself, to which no source leads: its store, and all that is in the data folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from longthread.settings import EMBEDDED, Settings

_BESIDE = ("", "-wal", "-shm", "-journal")
"""The ends of the names of a SQLite database's files."""
_Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """Folders and files, by what they are and not by their names, except for the folders `given` to users."""

    folders: tuple[Path, ...]
    files: tuple[Path, ...] = ()
    given: tuple[Path, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> OwnFiles:
        """Those of these settings. What users upload lies in the data folder, and is theirs."""
        kind, _, folder = settings.database.partition(":")
        folders = [settings.data_dir, *([Path(folder)] if kind == EMBEDDED else [])]
        files = [] if "://" in settings.database or kind == EMBEDDED else [Path(settings.database)]
        beside = tuple(file.with_name(file.name + end) for file in files for end in _BESIDE)
        return cls(tuple(folders), beside, (settings.data_dir / "uploads",))

    def holds(self, path: Path) -> bool:
        """Whether a path leads to one of them, by whatever name or link. Raises OSError: it leads nowhere."""
        found = path.stat()
        if _identity(found) in _identities(self.files):
            return True
        own, given = _identities(self.folders), _identities(self.given)
        real = path.resolve()
        for above in _identities((real, *real.parents)):
            if above in given:
                return False
            if above in own:
                return True
        # A file of several names may have one of them among ours.
        return stat.S_ISREG(found.st_mode) and found.st_nlink > 1 and self._has_link(_identity(found))

    def _has_link(self, wanted: _Identity) -> bool:
        given = _identities(self.given)
        for top in self.folders:
            for folder, below, names in os.walk(top):
                below[:] = [each for each in below if not {*_identities([Path(folder, each)])} & {*given}]
                if wanted in _identities(Path(folder, name) for name in names):
                    return True
        return False


def _identity(found: os.stat_result) -> _Identity:
    return found.st_dev, found.st_ino


def _identities(paths: Iterable[Path]) -> list[_Identity]:
    """What is at paths, in their order, without those where nothing is."""
    return [*_found(paths)]


def _found(paths: Iterable[Path]) -> Iterator[_Identity]:
    for path in paths:
        try:
            yield _identity(path.stat())
        except OSError:
            continue
