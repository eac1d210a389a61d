"""Every error that Longthread raises on purpose.

A class has a message and declares the fields that its message names. They are given by keyword when the error is
raised: a missing or a misspelt one is a TypeError.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from longthread.extras import install_command


@dataclass_transform(kw_only_default=True)
class _WithFields(Exception):
    """An exception whose message names its fields."""

    message: ClassVar[str] = ""
    """What happened and what to do. Each `{name}` is a field of the error."""
    code: ClassVar[str]
    """The `type` of an observation and of an HTTP problem; by default the class's name, as `thread_not_found`."""
    exit_code: ClassVar[int] = 1
    """What the command line exits with."""
    reason = ""
    _optional: ClassVar[frozenset[str]] = frozenset()
    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, code: str = "", exit_code: int | None = None) -> None:
        super().__init_subclass__()
        cls.message = " ".join(cls.message.split())
        cls.code = code or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        cls.exit_code = cls.exit_code if exit_code is None else exit_code
        cls._optional |= inspect.get_annotations(cls).keys() & vars(cls).keys()
        named = [name for _, name, _, _ in Formatter().parse(cls.message) if name]
        cls._fields = tuple(dict.fromkeys([*named, *sorted(cls._optional)]))

    def __init__(self, **details: Any) -> None:
        if wrong := sorted((details.keys() - self._fields) | ({*self._fields} - self._optional - details.keys())):
            raise TypeError(f"{type(self).__name__} has the fields {sorted(self._fields)}; wrong: {', '.join(wrong)}")
        vars(self).update(details)
        super().__init__(self._text())

    @property
    def details(self) -> Mapping[str, Any]:
        """The values of the fields."""
        return {name: getattr(self, name) for name in self._fields}

    def described(self) -> dict[str, Any]:
        """The error for programs: its code, its message, and those of its fields that are text or numbers."""
        params = {name: value for name, value in self.details.items() if isinstance(value, (str, int, float))}
        return {"type": self.code, "message": str(self), "params": params}

    def _text(self) -> str:
        return " ".join(self.message.format_map(self.details).split())


class LongthreadError(_WithFields, code="error"):
    message = "Longthread could not do this. {reason}"
    if TYPE_CHECKING:
        reason: str = ""  # for mypy, every error may have one; when it is raised, those whose message names it must


# The store.
class StoreError(LongthreadError, exit_code=5):
    message = "The conversation store failed: {reason}"


class StoreUnavailable(StoreError):
    message = """The conversation store at {where} cannot be opened: {reason} If it is another one that you mean, give
    that one's address (commands: --database or LONGTHREAD_DATABASE_URL)."""
    where: Path | str


class StoreClosed(StoreError):
    message = "The conversation store was closed: nothing more is read from it or written to it."


class StoreDisconnected(StoreError):
    message = "The connection to the conversation store was lost: {reason} Nothing of this was written. Repeat it."


class CommitUnknown(StoreDisconnected):
    message = """The connection to the conversation store was lost while a transaction was being committed: {reason}
    Whether it was written is not known; repeating it is safe."""


class StoreTooNew(StoreError):
    message = """The conversation store at {where} has schema version {found}, and this Longthread knows {known}.
    Upgrade Longthread, or use another store."""
    where: Path | str
    found: int
    known: int


class StoreFull(StoreError):
    message = """The conversation store is full: {reason} Nothing of this was written. Free some space on its disk and
    repeat."""


class StoreReadOnly(StoreError):
    message = """The conversation store may not be written to: {reason} Nothing was changed. Commands that only read
    take --read-only. To write to it, leave that and LONGTHREAD_READ_ONLY out and give this user the right to write (to
    a file, to its folder too), or use another store with --database."""


class StoreDamaged(StoreError):
    message = """The conversation store is damaged: {reason} Nothing was changed. Stop what uses it and keep a copy of
    it; then restore a backup, or take what can still be read with `longthread threads export`, and the rows as they are
    with `longthread db copy`."""


class RowDamaged(StoreDamaged, code="store_damaged"):
    pass


class ValueDamaged(RowDamaged, code="store_damaged"):
    message = """A stored value cannot be read: {reason} Nothing was changed. If the application's serializer or classes
    are other ones than those that stored it, read it with those. If not, the conversation store is damaged: stop what
    uses it and keep a copy of it; then restore a backup, or take what can still be read with `longthread threads
    export`, and the rows as they are with `longthread db copy`."""


class StoreConflict(StoreError, exit_code=4):
    message = """Another transaction of the conversation store was faster: {reason} Nothing of this was written. Read
    again and repeat."""


class NotAsExpected(StoreConflict, code="store_conflict"):
    message = "The conversation store is not as it was: {reason} Nothing of this was written. Read again and repeat."


class ValueRefused(StoreError):
    message = """The conversation store does not take a value: {reason} Nothing of this was written. Give one that its
    column takes."""


class NotStorable(StoreError, exit_code=2):
    message = "A value cannot be stored."


class TextNotStorable(NotStorable):
    message = """The text of {name} holds a NUL character or half of a surrogate pair, which no text column can hold.
    Replace it (by U+FFFD, say), or store the content as bytes."""
    name: str


class NumberNotStorable(NotStorable):
    message = """The number of {name} is none that every store can hold: whole numbers have at most 64 bits, and others
    are not NaN. Give another."""
    name: str


class MessageNotStorable(NotStorable):
    message = """Message {message_id} holds a value that cannot be written down: {reason}. Give text, numbers, bytes,
    lists or objects of these, or leave it out."""
    message_id: str | None


class ItemNotStorable(NotStorable):
    message = """Item {key} holds a value that is no JSON: {reason}. Give text, numbers, lists or objects of these, or
    leave it out."""
    key: str


class ThreadNotFound(LongthreadError, exit_code=2):
    message = "There is no thread {thread}. `longthread threads list` shows those there are."
    thread: str


class ThreadBegunAnew(ThreadNotFound, code="thread_not_found"):
    message = """Thread {thread} was deleted since this began, and another of its id was begun: nothing of this is in
    that one. Run again, and it goes on from what is there."""


class ThreadTaken(LongthreadError, exit_code=2):
    message = """There already is a thread {thread}, of this user or of another one of the store. Give an id that is not
    in use: one with the user's name in it, say."""
    thread: str


class EntryNotFound(LongthreadError, exit_code=2):
    message = "Thread {thread} has no entry {entry}."
    thread: str
    entry: int | str


class MemoryNotFound(LongthreadError, exit_code=2):
    message = "There is no memory {memory}. `longthread memories list` shows those there are."
    memory: str


class TooManyMemories(LongthreadError, exit_code=2):
    message = """There are {count} memories already, and no more are kept. Forget some: `longthread memories list` shows
    them, the least important last."""
    count: str


class ThreadConflict(LongthreadError, exit_code=4):
    message = """Thread {thread} was extended by another writer in the meantime: nothing of this was written, and what
    was acknowledged before stays. Read the thread again and repeat what is not in it."""
    thread: str


class RunInProgress(LongthreadError, exit_code=4):
    message = "Thread {thread} already has a run in progress ({run}). Wait for it, or stop it, and ask again."
    thread: str
    run: str


class RunWaiting(RunInProgress):
    message = """Run {run} on thread {thread} waits until somebody has decided about its calls. See `longthread approve
    {thread}` and `longthread reject {thread}`."""


class NotPending(LongthreadError, exit_code=2):
    message = """Thread {thread} has no call {call} that waits for a decision: it was decided, or there never was one.
    {hint}"""
    thread: str
    call: str
    hint: str


class LeaseLost(LongthreadError, exit_code=4):
    message = """Run {run} on thread {thread} is no longer this process's: it was taken over or ended by another, or the
    thread was deleted. Nothing more was written."""
    run: str
    thread: str


class RunNotFound(LongthreadError, exit_code=2):
    message = "Thread {thread} has no run {run}."
    thread: str
    run: str


class RunElsewhere(RunInProgress):
    message = "Run {run} on thread {thread} is executed by another process: stop it there, or end that process."


class NothingToResume(LongthreadError, exit_code=2):
    message = """Thread {thread} has no paused, stopped or interrupted run to resume. Ask a question with `longthread
    ask --thread {thread}`."""
    thread: str


class NothingToStop(NothingToResume):
    message = "Thread {thread} has no run to stop: none is being executed, and none waits for approval."


# Input and settings.
class InvalidInput(LongthreadError, exit_code=2):
    message = "{reason}"


class QuestionTooLong(InvalidInput):
    message = """The question has {size} characters, and the limit is {limit}. Put the data into a file and give that as
    a --source, or raise LONGTHREAD_MAX_QUESTION."""
    size: str
    limit: str


class SourceMissing(InvalidInput):
    message = "There is no source to ask. Give one with --source, or try --source demo."


class ArchiveInvalid(InvalidInput):
    message = "{where} cannot be imported: line {line}: {reason} Nothing was written."
    where: Path | str
    line: int


class EvalInvalid(InvalidInput):
    message = """{where} cannot be measured with: {reason} It holds entries and queries, one JSON object a line;
    docs/guide/recall.md shows them."""
    where: Path | str


class StatementsInvalid(InvalidInput):
    message = """{where} cannot be judged: {reason} It holds SQL statements, one JSON object a line;
    docs/guide/sql.md shows them."""
    where: Path | str


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


# LangGraph.
class SaverClosed(LongthreadError):
    message = """The saver or store cannot be used: {reason} Use it inside its block, or open another with
    LongthreadSaver.from_conn_string(…)."""


class CalledOnItsLoop(LongthreadError):
    message = """`{method}` was called on the event loop of its own saver or store, and would wait for itself for ever.
    Use `await saver.a{method}(…)`, and ainvoke, astream, aget_state or aupdate_state of the graph. Or open it with a
    plain `with LongthreadSaver.from_conn_string(…)`: it then runs on a thread of its own."""
    method: str


class ExtraMissing(LongthreadError, exit_code=2):
    message = "{what} needs the Python package {package}, which is not installed: {command}"
    what: str
    package: str
    command: str

    def __init__(self, *, what: str, package: str, extra: str) -> None:
        _WithFields.__init__(self, what=what, package=package, command=install_command(extra))


class SerializerNotUsable(InvalidInput):
    message = """LongthreadSaver cannot use {serde}: messages are stored as text, which recall searches, and would not
    be encrypted. Encrypt the disk or the database, or keep these threads with another saver."""
    serde: str


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


class CheckpointUnreadable(LongthreadError):
    message = "Checkpoint {checkpoint} of thread {thread} cannot be read: {reason}"
    checkpoint: str
    thread: str


class ImportIncomplete(LongthreadError):
    message = """Not everything of {where} was imported: {reason} The rest is here, and nothing is lost there. When the
    cause is gone, import again: it goes on with what is missing."""
    where: Path | str


# Models.
class ModelUnavailable(LongthreadError, exit_code=6):
    message = "The model {model} cannot be used: {reason} Or use `--model demo`, which needs no key and no network."
    model: str


class EmbedderUnavailable(LongthreadError, exit_code=6):
    message = """The embedder {embedder} cannot be used: {reason} Check MEMORY_EMBEDDING_MODEL, or leave it out: recall
    then goes by keywords alone."""
    embedder: str


class ModelNotUsable(ModelUnavailable, code="model_unavailable"):
    message = "The model {model} cannot be used: {reason}"


class ModelFailed(LongthreadError, exit_code=6):
    message = "The model {model} failed: {reason} The conversation is kept; `longthread resume {thread}` tries again."
    model: str
    thread: str


class WindowTooSmall(LongthreadError, exit_code=6):
    message = """The context window of {model}, {window}, leaves no room for the conversation beside {needed}. Use a
    model with a larger one, or correct MEMORY_CONTEXT_WINDOW."""
    model: str
    window: str
    needed: str


class JsonParseFailed(LongthreadError, code="json_parse_error"):
    message = """The model's reply was not a valid call or answer {count} times in a row. The conversation is kept with
    the raw replies. Try another model, or --protocol {other}."""
    count: int
    other: str


# Sources and SQL.
class SourceError(LongthreadError, exit_code=3):
    message = "A source failed. {reason}"


class SourceFailed(SourceError, code="source_error"):
    message = "The source {source} failed: {reason}"
    source: str


class SourceNotFound(SourceFailed):
    message = """There is no source at {source}. Give a database file, a CSV or Parquet file, a folder of them, a
    SQLAlchemy URL such as postgresql://host/db or mysql://host/db, or `demo`."""


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


class SourceEmpty(SourceFailed):
    message = "The source {source} has no tables. Give one that has, or try `--source demo`."


class SourceLocked(SourceFailed):
    message = "The source {source} is locked by another program. Close that program or wait, then ask again."


class SourceNotAllowed(SourceFailed):
    message = """The source {source} may not be asked through this server, for it listens beyond this machine and has no
    login yet. Allowed are: {allowed}. Its operator can start it with another --source, or on 127.0.0.1."""
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
    message = "The policies in {where} cannot be read: {reason} docs/guide/sql.md shows them."
    where: Path | str


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


# Tools that users define.
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


# The catalog.
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


class DefinitionInUse(LongthreadError, exit_code=4):
    message = "The {kind} {name} is used by {users}. {remedy}"
    kind: str
    name: str
    users: str
    remedy: str


# The server.
class ServerError(LongthreadError, exit_code=7):
    message = "The server cannot start: {reason}"


class PortInUse(ServerError):
    message = """Port {port} of {host} is in use by another program. Is Longthread running already? Else give another
    one with --port or LONGTHREAD_PORT; 0 takes any free port."""
    port: int
    host: str


class AddressUnavailable(ServerError):
    message = "The server cannot listen on {host}, port {port}: {reason} Give another with --host and --port."
    host: str
    port: int
