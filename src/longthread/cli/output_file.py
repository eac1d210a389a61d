"""The file that an export is written to: none that holds something else is lost for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from longthread.errors import InvalidInput
from longthread.settings import EMBEDDED
from longthread.store.open import is_postgres

SQLITE = b"SQLite format 3\0"
"""What the file of a SQLite database begins with."""
_WAL = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_BESIDE = ("", "-wal", "-shm", "-journal")


@contextmanager
def output(to: Path | None, store: str, *, force: bool) -> Iterator[BinaryIO]:
    """Where an export goes: a file, or standard output. It gets the file's name when it is complete, and so one that is
    there stays until then.

    Args:
        store: the address of the store that is exported.
        force: a file that is there is replaced, unless it belongs to a store or is a database.

    Raises:
        InvalidInput: the file may not be written, or cannot; the message says why.
    """
    if to is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        file = to.resolve()  # what a link leads to is replaced, and the link stays
        _check(file, to, store, force=force)
        if file.exists() and not file.is_file():  # such as a pipe
            with file.open("wb") as pipe:
                yield pipe
            return
        part = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as written:
                yield written
                written.flush()
                os.fsync(written.fileno())
            _check(file, to, store, force=force)  # it may be there by now
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(reason=f"{to} cannot be written: {error.strerror}.") from error


def _check(file: Path, to: Path, store: str, *, force: bool) -> None:
    if _is_of(file, store):
        raise InvalidInput(reason=f"{to} belongs to the store that is exported. Give another file.")
    if file.is_dir():
        raise InvalidInput(reason=f"{to} is a folder. Give the name of a file in it.")
    if not file.is_file():
        return
    # Here and not above: it comes with all that reads SQL, which takes time to load.
    from longthread.tools.analysis.engines.sqlite import is_sqlite

    # First of all by SQLite itself: what it has open here would lose its locks.
    if is_sqlite(file) or _begins(file, SQLITE, *_WAL):
        raise InvalidInput(reason=f"{to} is a SQLite database, and is not overwritten. Give another file.")
    if not force:
        raise InvalidInput(reason=f"{to} is there already. Give another file, or --force to replace it.")


def _begins(file: Path, *marks: bytes) -> bool:
    with file.open("rb") as there:
        return there.read(len(SQLITE)).startswith(marks)


def _is_of(file: Path, store: str) -> bool:
    """Whether a file is one of a store's, by whatever name."""
    if is_postgres(store):
        return False
    if store.startswith(f"{EMBEDDED}:"):
        return file.is_relative_to(Path(store.removeprefix(f"{EMBEDDED}:")).resolve())
    base = Path(store).resolve()
    own = [base.with_name(base.name + end) for end in _BESIDE]
    return file in own or (file.exists() and any(each.exists() and each.samefile(file) for each in own))
