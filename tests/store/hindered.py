"""What keeps a process from writing to a file."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def no_page_more() -> Iterator[None]:
    """No file of this process can have a page: SQLite is told so where it makes its `-shm` file, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def permitted(path: Path, file: int, folder: int) -> Iterator[None]:
    """Only so much may be done with a file and its folder; whoever it is may come so far."""
    for each in path.parent.parents:
        each.chmod(each.stat().st_mode | 0o011)
    path.chmod(file)
    path.parent.chmod(folder)
    try:
        yield
    finally:
        path.parent.chmod(0o755)
        path.chmod(0o644)
