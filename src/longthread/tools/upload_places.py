"""How uploaded files take their places on the disk: each its own, also while other servers work in the same folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

UNFINISHED = "made"
"""A source's folder until its files are in it."""


def take_place(file: Path, place: Path) -> None:
    """Move a file to a place, as `rename` does, which would replace a file there. Raises FileExistsError."""
    try:
        os.link(file, place)
        is_linked = True
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:  # this file system has no links
        place.touch(0o600, exist_ok=False)
        is_linked = False
    try:
        if is_linked:
            file.unlink()
        else:
            file.replace(place)
    except OSError:  # another request has just taken the file
        place.unlink()
        raise


def copy_all(files: Mapping[Path, str], folder: Path) -> None:
    """Give files a second place in a new folder, by these names."""
    folder.mkdir(0o700, parents=True)
    for file, name in files.items():
        try:
            os.link(file, folder / name)
        except FileNotFoundError:
            raise
        except OSError:  # this file system has no links
            shutil.copyfile(file, folder / name)


def into_folder(file: Path, folder: Path) -> None:
    """Put a file into a folder beside it, which may have its name."""
    made = file.with_name(UNFINISHED)
    made.mkdir(0o700)
    file.rename(made / file.name)
    made.rename(folder)


def out_of_folder(folder: Path, name: str) -> None:
    """Put a file in the place of its folder."""
    made = folder.rename(folder.with_name(UNFINISHED))
    (made / name).rename(made.with_name(name))
    made.rmdir()
