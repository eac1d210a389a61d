"""Errors of imports and copies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from longthread.errors.base import LongthreadError
from longthread.errors.input import InvalidInput
from longthread.errors.store import StoreError


class ArchiveInvalid(InvalidInput):
    message = "{where} cannot be imported: line {line}: {reason} Nothing was written."
    where: Path | str
    line: int


class NotImported(InvalidInput):
    message = """Not imported from {where}: {refused}. A thread that is there is never overwritten. Import it under
    another id with --as NEW_ID, or delete the one that is there and import again."""
    where: Path | str
    refused: str


class NotCopied(StoreError):
    message = "Not copied to {where}: {refused}. What is there already was left as it is. {remedy}"
    where: Path | str
    refused: str
    remedy: str


class NotACheckpointDatabase(InvalidInput):
    message = """{where} cannot be imported: {reason} Give the SQLite file of a LangGraph SqliteSaver, or the
    postgresql:// address of a PostgresSaver."""
    where: Path | str


class NothingToImport(InvalidInput):
    message = """{where} cannot be imported: {reason} Give an export of Longthread's, or the SQLite file or
    postgresql:// address of a database that docs/how-to/import.md lists."""
    where: Path | str


class ImportedUnreadable(StoreError):
    message = """The database to import cannot be read: {reason} Nothing in it was changed, and what came of it before
    stays. If it is damaged, keep a copy of it and repair it (SQLite: `.recover`); then import again: it goes on with
    the rest."""


class ImportIncomplete(LongthreadError):
    message = """Not everything of {where} was imported: {reason} The rest is here, and nothing is lost there. When the
    cause is gone, import again: it goes on with what is missing."""
    where: Path | str
    left: Sequence[str] = ()
    """Everything that was left out, and why."""


class NotAnExportTarget(InvalidInput):
    message = """Nothing was exported to {where}: {reason} Give sqlite:///FILE or the postgresql:// address of a
    database for LangGraph's own savers, or of a new one."""
    where: Path | str


class ExportFailed(StoreError):
    message = """The database that is exported to failed: {reason} What was written before is there, and nothing has
    changed here. When the cause is gone, export again: it goes on with the rest."""


class ExportIncomplete(LongthreadError):
    message = """Not everything was exported to {where}: {reason} The rest is there, and nothing has changed here.
    Export again: it goes on with what is missing. What is there and differs is replaced with --replace, or in a
    program with replaces=True."""
    where: Path | str
    left: Sequence[str] = ()
    """Everything that was left out, and why."""
