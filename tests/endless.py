"""A data file that no worker has read to its end before the machine is scrapped."""

from __future__ import annotations

from pathlib import Path


def endless_csv(folder: Path) -> Path:
    """A file of 1 TB, which takes no room on the disk: it is text at its beginning, and a hole behind it."""
    path = folder / "endless.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n" + b"1,2\n" * 20_000)
        file.truncate(2**40)
    return path
