"""`longthread db backup` and `longthread db restore`: a whole store as one file, and back."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from longthread.cli import options
from longthread.cli.terminal import echo, print_line
from longthread.cli.whole_store import BESIDE, bytes_text, count_noun, existing, run, show_progress
from longthread.errors import InvalidInput
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.open import open_store, refuse_same_place
from longthread.store.schema import SCHEMA_VERSION
from longthread.store.transfer.backup import BackupContents, check_backup, restore_backup, write_backup


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write. One that is there stays.")],
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """Write the whole store, as it is at one moment, into one file. It may run while servers do.

    The file is read back and compared, and holds the counts and hashes that `db restore` checks.
    """
    settings = Settings.load(database=database, read_only=read_only)

    async def work() -> BackupContents:
        with _new_file(file) as part:
            async with existing(settings) as store, open_store(part) as copy:
                with show_progress("backing up") as progress:
                    contents = await write_backup(store, copy, progress)
        return contents

    contents = run(work())
    size = file.stat().st_size
    if as_json:
        print_line(asdict(contents) | {"file": str(file), "bytes": size})
    else:
        echo("{}: {}, {}, {}.", file, *_describe_contents(contents), bytes_text(size))


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `db backup` wrote.")],
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Write a backup to a new store, in one transaction: afterwards all of it is there, or nothing.

    It compares the file, and what it wrote, with the backup's counts and hashes. Nothing that is stored is replaced.
    """
    settings = Settings.load(database=database)
    to = settings.database
    if not file.is_file():
        raise InvalidInput(reason=f"There is no file {file}.")
    refuse_same_place(str(file), to)

    async def work() -> tuple[BackupContents, str]:
        async with _open_checked(file) as (contents, store), open_store(to, read_only=settings.read_only) as target:
            with show_progress("restoring") as progress:
                await restore_backup(store, target, progress)
            return contents, target.where

    contents, where = run(work())
    if as_json:
        print_line(asdict(contents) | {"to": where})
    else:
        echo("Restored to {}: {}, {}, with the counts and hashes of the backup.", where, *_describe_contents(contents))


def _describe_contents(contents: BackupContents) -> tuple[str, str]:
    return count_noun(contents.threads, "thread"), count_noun(contents.rows, "row")


@contextmanager
def _new_file(to: Path) -> Iterator[Path]:
    """Where a backup is written, for this user alone to read; it gets the file's name when it is complete.

    Raises:
        InvalidInput: the file is there, or cannot be written.
    """
    file = to.resolve()
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        _expect_none(file, to)
        part.touch(mode=0o600, exist_ok=False)
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        _expect_none(file, to)
        part.rename(file)
    except OSError as error:
        raise InvalidInput(reason=f"{to} cannot be written: {error.strerror}.") from error
    finally:
        for end in BESIDE:
            part.with_name(part.name + end).unlink(missing_ok=True)


def _expect_none(file: Path, to: Path) -> None:
    if file.exists():
        raise InvalidInput(reason=f"{to} is there already, and no backup replaces a file. Give another name.")


@asynccontextmanager
async def _open_checked(file: Path) -> AsyncIterator[tuple[BackupContents, Driver]]:
    """A backup that is as it was written, open with the current schema: an older one is upgraded in a copy."""
    async with open_store(file, read_only=True, migrates=False) as store:
        contents = await check_backup(store)
        if store.found_version == SCHEMA_VERSION:
            yield contents, store
            return
    with TemporaryDirectory(prefix="longthread-") as folder:
        async with open_store(shutil.copy(file, folder)) as upgraded:
            yield contents, upgraded
