"""Errors of sources and SQL, and of tools that users define, in the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from longthread.documentation import documentation
from longthread.errors.base import InvalidInput, LongthreadError

__all__ = [
    "AgentOfThread",
    "AgentOff",
    "ApiFailed",
    "ApiRefused",
    "ApiStatus",
    "ArgumentsInvalid",
    "CatalogInvalid",
    "CodeFailed",
    "CodeStopped",
    "CodeUnavailable",
    "ColumnNotFound",
    "DefinitionAmbiguous",
    "DefinitionBuiltIn",
    "DefinitionInUse",
    "DefinitionNotFound",
    "McpFailed",
    "McpToolFailed",
    "PoliciesInvalid",
    "PolicyUnusable",
    "ResultNotFound",
    "ResultTooLong",
    "SecretUnusable",
    "SourceCrashed",
    "SourceEmpty",
    "SourceError",
    "SourceFailed",
    "SourceIsStore",
    "SourceLocked",
    "SourceLoginFailed",
    "SourceNotAllowed",
    "SourceNotFound",
    "SourceTaken",
    "SourceTimeout",
    "SourceUnreachable",
    "SourceUnreadable",
    "SourceUnsupported",
    "SourceWithoutPolicy",
    "SqlFailed",
    "SqlRefused",
    "SqlRepeated",
    "SqlTimeout",
    "SqlTooLarge",
    "TableNotFound",
    "ToolInvalid",
    "ToolOnCommandLine",
    "UploadExists",
    "UploadFailed",
    "UploadNotFound",
    "UploadRefused",
    "UploadTooLarge",
    "VersionNotFound",
    "WorkerFailed",
]


class ToolInvalid(InvalidInput):
    message = "The tool {tool} cannot be used: {problem}"
    tool: str = ""
    problem: str
    known: bool = False
    """Whether the problem has been reported before."""


class ArgumentsInvalid(InvalidInput):
    message = "The call of {tool} was not made. {problem}"
    tool: str
    problem: str


class SecretUnusable(LongthreadError, exit_code=2):
    message = """The secret {name} {problem} Whoever runs Longthread sets it, as LONGTHREAD_SECRET_{name} in the
    environment or in .env."""
    name: str
    problem: str


class ApiFailed(LongthreadError):
    message = "The request failed: {reason}"
    sent: str = ""


class ApiRefused(LongthreadError):
    message = "The request was not sent: {reason}"


class ApiStatus(LongthreadError):
    message = "The server answered with status {status}: {body}"
    status: int
    body: str


class CodeFailed(LongthreadError):
    message = "The tool's code failed: {reason}"


class CodeStopped(LongthreadError):
    message = "The tool's code was stopped: {reason}"


class CodeUnavailable(LongthreadError):
    message = "The tool's code cannot be run here: {reason}"


class McpFailed(LongthreadError):
    message = "The MCP server {server} failed: {reason}"
    server: str
    forgotten: bool = False
    """Whether the server has ended the session, and a new one can be opened."""


class McpToolFailed(LongthreadError):
    message = "The MCP server's tool failed: {reason}"


class CatalogInvalid(InvalidInput):
    message = "Nothing was changed, for this is not right: {problems}"
    problems: Sequence[str]

    def _text(self) -> str:
        problems = [" ".join(str(problem).split()) for problem in self.problems]
        listed = problems[0] if len(problems) == 1 else "".join(f"\n  {problem}" for problem in problems)
        return self.message.format(problems=listed)


class DefinitionNotFound(LongthreadError, exit_code=2):
    message = "There is no {kind} {name}. {nearest}"
    kind: str
    name: str
    nearest: str


class DefinitionAmbiguous(InvalidInput):
    message = "Several {kind}s are called {name}. Give the id of the one that is meant: {ids}."
    kind: str
    name: str
    ids: str


class VersionNotFound(LongthreadError, exit_code=2):
    message = "The {kind} {name} has no version {version}. {versions}"
    kind: str
    name: str
    version: int
    versions: str


class AgentOff(InvalidInput):
    message = "The agent {name} is switched off. `is_active: true` in its definition, applied, switches it on."
    name: str


class AgentOfThread(InvalidInput):
    message = "The conversation {thread} is the agent {name}'s. Ask it there, or begin another conversation."
    thread: str
    name: str


class DefinitionBuiltIn(InvalidInput):
    message = "The {kind} {name} is built in and stays. What you define goes under another name."
    kind: str
    name: str


class ToolOnCommandLine(LongthreadError, exit_code=2):
    message = """The tool {tool} {power}, with the rights of the server's user. Define it where the server runs, with
    `longthread apply`. All but its implementation can then be changed here."""
    tool: str
    power: str


class DefinitionInUse(LongthreadError, exit_code=4):
    message = "The {kind} {name} is used by {users}. {remedy}"
    kind: str
    name: str
    users: str
    remedy: str


class SourceError(LongthreadError, exit_code=3):
    message = "A source failed. {reason}"


class SourceFailed(SourceError, code="source_error"):
    message = "The source {source} failed: {reason}"
    source: str


class SourceNotFound(SourceFailed):
    message = """There is no source at {source}. Give a database file, a CSV, Excel, JSON or Parquet file, a folder
    of them, a SQLAlchemy URL such as postgresql://host/db or mysql://host/db, or `demo`."""


class SourceUnreadable(SourceFailed):
    message = "The source {source} cannot be read: {reason}"


class SourceUnsupported(SourceFailed):
    message = "The source {source} is of a kind that is not read: {reason}"


class SourceUnreachable(SourceFailed):
    message = """The database server of {source} cannot be reached: {reason} Check host, port, user and password, and
    that it runs."""


class SourceLoginFailed(SourceUnreachable):
    message = """The database server of {source} did not let us in: {reason} A conversation keeps no password: apply a
    source of this address to the catalog, with its password as a secret, or give it again with --source, or set
    {variable}, or write it into {file}."""
    variable: str
    file: str


class SourceIsStore(SourceFailed):
    message = """{source} holds conversations, keys or other data of Longthread itself, and is never a source. Give a
    database or file of your own; data of yours that lies there belongs elsewhere."""


class SourceEmpty(SourceFailed):
    message = "The source {source} has no tables. Give one that has, or try `--source demo`."


class SourceLocked(SourceFailed):
    message = "The source {source} is locked by another program. Close that program or wait, then ask again."


class SourceTimeout(SourceFailed):
    message = """The source {source} was not open after {seconds} s, and opening it was stopped. A big file opens
    soonest as Parquet. Or raise the limit with LONGTHREAD_SOURCE_TIMEOUT."""
    seconds: str


class SourceNotAllowed(SourceFailed):
    message = """The source {source} may not be asked from here: only the user of the server's own machine may name any
    source, for there is no login yet. Allowed are: {allowed}. Its operator can start it with another --source."""
    allowed: str


class TableNotFound(SourceError, code="unknown_table"):
    message = "There is no table {table}. {nearest}"
    table: str
    nearest: str


class ColumnNotFound(SourceError, code="unknown_column"):
    message = "There is no column {column}. {nearest}"
    column: str
    nearest: str


class SqlRefused(SourceError):
    message = "This SQL is not run: {reason} Send one read-only SELECT."


class SqlFailed(SourceError):
    message = "The database refused the query: {reason}"


class SqlRepeated(SourceError):
    message = """You sent this statement before, and it failed: {reason} It is not run again: write another one.
    {tables}."""
    reason: str
    tables: str


class SqlTooLarge(SqlFailed):
    message = "The query was stopped, for it takes more than it may: {reason}"


class SqlTimeout(SourceError):
    message = """The query was stopped after {seconds} s. Narrow it with WHERE or LIMIT, or raise the limit with
    LONGTHREAD_SQL_TIMEOUT."""
    seconds: str


class ResultNotFound(InvalidInput):
    message = "The conversation has no result {label}. Its results: {labels}."
    label: str
    labels: str


class ResultTooLong(InvalidInput):
    message = "A sheet holds {most} rows, and the result has more. Write it as CSV or Parquet."
    most: str


class PoliciesInvalid(InvalidInput):
    message = "The policies in {where} cannot be read: {reason} {page} shows them."
    where: Path | str
    page: str = documentation("guide/sql")


class PolicyUnusable(SourceError):
    message = """The policy of this source cannot be kept, so nothing is read: {reason} Whoever runs Longthread can
    correct it."""


class SourceWithoutPolicy(SourceFailed):
    message = """The source {source} may not be asked: policies are set, and name no such source. Whoever runs
    Longthread can add it to them."""


class SourceCrashed(SourceError):
    message = """The process that ran the query ended. {reason} Ask for less at once: filter or aggregate first. The
    next query runs in a new process."""


class WorkerFailed(SourceError):
    message = """There is no process that could run the query: {reason} LONGTHREAD_SQL_ISOLATED=false runs queries in
    this process, where they can be stopped less surely."""


class SourceTaken(LongthreadError, exit_code=2):
    message = "There is a source {name} already. Give another name."
    name: str


class UploadRefused(InvalidInput):
    message = "{name} was not taken: {reason}"
    name: str


class UploadTooLarge(InvalidInput):
    message = """The file has more than {limit} MB. Put it where the server runs and add it by its path, or raise
    LONGTHREAD_MAX_UPLOAD_MB."""
    limit: str


class UploadFailed(LongthreadError):
    message = "The file could not be stored: {reason} Nothing of it was kept. Try again."


class UploadExists(LongthreadError, exit_code=2):
    message = """There is a file {name} already, uploaded at {uploaded_at}: it is the source {source}. Send the new one
    with on_conflict=replace, and it takes that place; or with on_conflict=keep_both, and it is called {other}."""
    name: str
    uploaded_at: str
    source: str
    other: str


class UploadNotFound(LongthreadError, exit_code=2):
    message = "There is no upload {upload}. One that became no source is deleted after a day: upload the file again."
    upload: str
