"""Every error Longthread raises on purpose.

Each class's docstring is its message: it says what happened and what to do. `{names}` in it are filled from the
keyword arguments, which stay readable as attributes through `error.details`.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, ClassVar

from longthread.extras import install_command


class LongthreadError(Exception):
    """Longthread could not do this. {reason}"""

    code: ClassVar[str] = "error"
    """Stable, machine-readable name; the `type` of an error observation and of an HTTP problem. A class that gives none
    has its own name, as `thread_not_found`."""
    exit_code: ClassVar[int] = 1
    """What the command line exits with."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "code" not in cls.__dict__:
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, **details: Any) -> None:
        self.details = details
        super().__init__(self._message())

    def described(self) -> dict[str, Any]:
        """What programs are told: the code, the message, and what its `{names}` were filled from, where it is plain."""
        params = {name: value for name, value in self.details.items() if isinstance(value, (str, int, float))}
        return {"type": self.code, "message": str(self), "params": params}

    def _message(self) -> str:
        template = inspect.getdoc(type(self)) or type(self).__name__
        return " ".join(template.format_map(_Blank(self.details)).split())


class _Blank(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return ""


# The store.


class StoreError(LongthreadError):
    """The conversation store failed: {reason}"""

    exit_code = 5


class StoreUnavailable(StoreError):
    """The conversation store at {where} cannot be opened: {reason} If it is another one that you mean, give that one's
    address (commands: --database or LONGTHREAD_DATABASE_URL)."""


class StoreClosed(StoreError):
    """The conversation store was closed: nothing more is read from it or written to it."""


class StoreDisconnected(StoreError):
    """The connection to the conversation store was lost: {reason} Nothing of this was written. Repeat it."""


class CommitUnknown(StoreDisconnected):
    """The connection to the conversation store was lost while a transaction was being committed: {reason} Whether it
    was written is not known; repeating it is safe."""


class StoreTooNew(StoreError):
    """The conversation store at {where} has schema version {found}, and this Longthread knows {known}. Upgrade
    Longthread, or use another store."""


class StoreFull(StoreError):
    """The conversation store is full: {reason} Nothing of this was written. Free some space on its disk and repeat."""


class StoreReadOnly(StoreError):
    """The conversation store may not be written to: {reason} Nothing was changed. Give this user the right to write
    to it (to a file, to its folder too), or use another store with --database."""


class StoreDamaged(StoreError):
    """The conversation store is damaged: {reason} Nothing was changed. Stop what uses it and keep a copy of it; then
    restore a backup, or take what can still be read with `longthread threads export`, and the rows as they are with
    `longthread db copy`."""


class RowDamaged(StoreDamaged):
    # As its parent, but the database itself is sound, and other rows can be read and written.
    code = "store_damaged"


class ValueDamaged(RowDamaged):
    """A stored value cannot be read: {reason} Nothing was changed. If the application's serializer or classes are other
    ones than those that stored it, read it with those. If not, the conversation store is damaged: stop what uses it and
    keep a copy of it; then restore a backup, or take what can still be read with `longthread threads export`, and the
    rows as they are with `longthread db copy`."""

    code = "store_damaged"


class StoreConflict(StoreError):
    """Another transaction of the conversation store was faster: {reason} Nothing of this was written. Read again and
    repeat."""

    exit_code = 4


class NotAsExpected(StoreConflict):
    """The conversation store is not as it was: {reason} Nothing of this was written. Read again and repeat."""

    code = "store_conflict"


class ValueRefused(StoreError):
    """The conversation store does not take a value: {reason} Nothing of this was written. Give one that its column
    takes."""


class NotStorable(StoreError):
    """The value of {name} cannot be stored."""

    exit_code = 2


class TextNotStorable(NotStorable):
    """The text of {name} holds a NUL character or half of a surrogate pair, which no text column can hold. Replace it
    (by U+FFFD, say), or store the content as bytes."""


class NumberNotStorable(NotStorable):
    """The number of {name} is none that every store can hold: whole numbers have at most 64 bits, and others are not
    NaN. Give another."""


class MessageNotStorable(NotStorable):
    """Message {message} holds a value that cannot be written down: {reason}. Give text, numbers, bytes, lists or
    objects of these, or leave it out."""


class ItemNotStorable(NotStorable):
    """Item {key} holds a value that is no JSON: {reason}. Give text, numbers, lists or objects of these, or leave it
    out."""


class ThreadNotFound(LongthreadError):
    """There is no thread {thread}. `longthread threads list` shows those there are."""

    exit_code = 2


class ThreadBegunAnew(ThreadNotFound):
    """Thread {thread} was deleted since this began, and another of its id was begun: nothing of this is in that one.
    Run again, and it goes on from what is there."""

    code = ThreadNotFound.code


class ThreadTaken(LongthreadError):
    """There already is a thread {thread}, of this user or of another one of the store. Give an id that is not in use:
    one with the user's name in it, say."""

    exit_code = 2


class EntryNotFound(LongthreadError):
    """Thread {thread} has no entry {entry}."""

    exit_code = 2


class MemoryNotFound(LongthreadError):
    """There is no memory {memory}. `longthread memories list` shows those there are."""

    exit_code = 2


class TooManyMemories(LongthreadError):
    """There are {count} memories already, and no more are kept. Forget some: `longthread memories list` shows them, the
    least important last."""

    exit_code = 2


class ThreadConflict(LongthreadError):
    """Thread {thread} was extended by another writer in the meantime: nothing of this was written, and what was
    acknowledged before stays. Read the thread again and repeat what is not in it."""

    exit_code = 4


class RunInProgress(LongthreadError):
    """Thread {thread} already has a run in progress ({run}). Wait for it, or stop it, and ask again."""

    exit_code = 4


class RunWaiting(RunInProgress):
    """Run {run} on thread {thread} waits until somebody has decided about its calls. See `longthread approve {thread}`
    and `longthread reject {thread}`."""


class NotPending(LongthreadError):
    """Thread {thread} has no call {call} that waits for a decision: it was decided, or there never was one. {hint}"""

    exit_code = 2


class LeaseLost(LongthreadError):
    """Run {run} on thread {thread} is no longer this process's: it was taken over or ended by another, or the thread
    was deleted. Nothing more was written."""

    exit_code = 4


class RunNotFound(LongthreadError):
    """Thread {thread} has no run {run}."""

    exit_code = 2


class RunElsewhere(RunInProgress):
    """Run {run} on thread {thread} is executed by another process: stop it there, or end that process."""


class NothingToResume(LongthreadError):
    """Thread {thread} has no paused, stopped or interrupted run to resume. Ask a question with `longthread ask --thread
    {thread}`."""

    exit_code = 2


class NothingToStop(NothingToResume):
    """Thread {thread} has no run to stop: none is being executed, and none waits for approval."""


# Input and settings.


class InvalidInput(LongthreadError):
    """{reason}"""

    exit_code = 2


class QuestionTooLong(InvalidInput):
    """The question has {size} characters, and the limit is {limit}. Put the data into a file and give that as a
    --source, or raise LONGTHREAD_MAX_QUESTION."""


class SourceMissing(InvalidInput):
    """There is no source to ask. Give one with --source, or try --source demo."""


class ArchiveInvalid(InvalidInput):
    """{where} cannot be imported: line {line}: {reason} Nothing was written."""


class EvalInvalid(InvalidInput):
    """{where} cannot be measured with: {reason} It holds entries and queries, one JSON object a line;
    docs/guide/recall.md shows them."""


class StatementsInvalid(InvalidInput):
    """{where} cannot be judged: {reason} It holds SQL statements, one JSON object a line;
    docs/guide/sql.md shows them."""


class NotImported(InvalidInput):
    """Not imported from {where}: {refused}. A thread that is there is never overwritten. Import it under another id
    with --as NEW_ID, or delete the one that is there and import again."""


class NotCopied(StoreError):
    """Not copied to {where}: {refused}. What is there already was left as it is. {remedy}"""


# LangGraph.


class SaverClosed(LongthreadError):
    """The saver or store cannot be used: {reason} Use it inside its block, or open another with
    LongthreadSaver.from_conn_string(…)."""


class CalledOnItsLoop(LongthreadError):
    """`{method}` was called on the event loop of its own saver or store, and would wait for itself for ever. Use
    `await saver.a{method}(…)`, and ainvoke, astream, aget_state or aupdate_state of the graph. Or open it with a plain
    `with LongthreadSaver.from_conn_string(…)`: it then runs on a thread of its own."""


class ExtraMissing(LongthreadError):
    """{what} needs the Python package {package}, which is not installed: {command}"""

    exit_code = 2

    def __init__(self, *, what: str, package: str, extra: str) -> None:
        super().__init__(what=what, package=package, extra=extra, command=install_command(extra))


class SerializerNotUsable(InvalidInput):
    """LongthreadSaver cannot use {serde}: messages are stored as text, which recall searches, and would not be
    encrypted. Encrypt the disk or the database, or keep these threads with another saver."""


class NotACheckpointDatabase(InvalidInput):
    """{where} cannot be imported: {reason} Give the SQLite file of a LangGraph SqliteSaver, or the postgresql://
    address of a PostgresSaver."""


class NothingToImport(InvalidInput):
    """{where} cannot be imported: {reason} Give an export of Longthread's, or the SQLite file or postgresql:// address
    of a database that docs/how-to/import.md lists."""


class ImportedUnreadable(StoreError):
    """The database to import cannot be read: {reason} Nothing in it was changed, and what came of it before stays. If
    it is damaged, keep a copy of it and repair it (SQLite: `.recover`); then import again: it goes on with the rest."""


class CheckpointUnreadable(LongthreadError):
    """Checkpoint {checkpoint} of thread {thread} cannot be read: {reason}"""


class ImportIncomplete(LongthreadError):
    """Not everything of {where} was imported: {reason} The rest is here, and nothing is lost there. When the cause is
    gone, import again: it goes on with what is missing."""


# Models.


class ModelUnavailable(LongthreadError):
    """The model {model} cannot be used: {reason} Or use `--model demo`, which needs no key and no network."""

    exit_code = 6


class EmbedderUnavailable(LongthreadError):
    """The embedder {embedder} cannot be used: {reason} Check MEMORY_EMBEDDING_MODEL, or leave it out: recall then goes
    by keywords alone."""

    exit_code = 6


class ModelNotUsable(ModelUnavailable):
    """The model {model} cannot be used: {reason}"""

    code = "model_unavailable"
    # As its parent, but it was the caller who named the model: over HTTP a wrong request, and no failure of the server.


class ModelFailed(LongthreadError):
    """The model {model} failed: {reason} The conversation is kept; `longthread resume {thread}` tries again."""

    exit_code = 6


class WindowTooSmall(LongthreadError):
    """The context window of {model}, {window}, leaves no room for the conversation beside {needed}. Use a model with a
    larger one, or correct MEMORY_CONTEXT_WINDOW."""

    exit_code = 6


class JsonParseFailed(LongthreadError):
    """The model's reply was not a valid call or answer {count} times in a row. The conversation is kept with the raw
    replies. Try another model, or --protocol {other}."""

    code = "json_parse_error"
    exit_code = 1


# Sources and SQL.


class SourceError(LongthreadError):
    """The source {source} failed: {reason}"""

    exit_code = 3


class SourceNotFound(SourceError):
    """There is no source at {source}. Give a database file, a CSV or Parquet file, a folder of them, a SQLAlchemy URL
    such as postgresql://host/db or mysql://host/db, or `demo`."""


class SourceUnreadable(SourceError):
    """The source {source} cannot be read: {reason}"""


class SourceUnsupported(SourceError):
    """The source {source} is of a kind that is not read: {reason}"""


class SourceUnreachable(SourceError):
    """The database server of {source} cannot be reached: {reason} Check host, port, user and password, and that it
    runs."""


class SourceLoginFailed(SourceUnreachable):
    """The database server of {source} did not let us in: {reason} A conversation keeps no password: apply a source
    of this address to the catalog, with its password as a secret, or give it again with --source, or set {variable}, or
    write it into {file}."""


class SourceEmpty(SourceError):
    """The source {source} has no tables. Give one that has, or try `--source demo`."""


class SourceLocked(SourceError):
    """The source {source} is locked by another program. Close that program or wait, then ask again."""


class SourceNotAllowed(SourceError):
    """The source {source} may not be asked through this server, for it listens beyond this machine and has no login
    yet. Allowed are: {allowed}. Its operator can start it with another --source, or on 127.0.0.1."""


class TableNotFound(SourceError):
    """There is no table {table}. {nearest}"""

    code = "unknown_table"


class ColumnNotFound(SourceError):
    """There is no column {column}. {nearest}"""

    code = "unknown_column"


class SqlRefused(SourceError):
    """This SQL is not run: {reason} Send one read-only SELECT."""


class SqlFailed(SourceError):
    """The database refused the query: {reason}"""


class SqlTooLarge(SqlFailed):
    """The query was stopped, for it takes more than it may: {reason}"""


class SqlTimeout(SourceError):
    """The query was stopped after {seconds} s. Narrow it with WHERE or LIMIT, or raise the limit with
    LONGTHREAD_SQL_TIMEOUT."""


class ResultNotFound(InvalidInput):
    """The conversation has no result {label}. Its results: {labels}."""


class ResultTooLong(InvalidInput):
    """A sheet holds {most} rows, and the result has more. Write it as CSV or Parquet."""


class PoliciesInvalid(InvalidInput):
    """The policies in {where} cannot be read: {reason} docs/guide/sql.md shows them."""


class PolicyUnusable(SourceError):
    """The policy of this source cannot be kept, so nothing is read: {reason} Whoever runs Longthread can correct it."""


class SourceWithoutPolicy(SourceError):
    """The source {source} may not be asked: policies are set, and name no such source. Whoever runs Longthread can add
    it to them."""


class SourceCrashed(SourceError):
    """The process that ran the query ended. {reason} Ask for less at once: filter or aggregate first. The next query
    runs in a new process."""


class WorkerFailed(SourceError):
    """There is no process that could run the query: {reason} LONGTHREAD_SQL_ISOLATED=false runs queries in this
    process, where they can be stopped less surely."""


# Tools that users define.


class ToolInvalid(InvalidInput):
    """The tool {tool} cannot be used: {problem}"""


class ArgumentsInvalid(InvalidInput):
    """The call of {tool} was not made. {problem}"""


class SecretUnusable(LongthreadError):
    """The secret {name} {problem} Whoever runs Longthread sets it, as LONGTHREAD_SECRET_{name} in the environment or
    in .env."""

    exit_code = 2


class ApiFailed(LongthreadError):
    """The request failed: {reason}"""


class ApiRefused(LongthreadError):
    """The request was not sent: {reason}"""


class ApiStatus(LongthreadError):
    """The server answered with status {status}: {body}"""


class CodeFailed(LongthreadError):
    """The tool's code failed: {reason}"""


class CodeStopped(LongthreadError):
    """The tool's code was stopped: {reason}"""


class CodeUnavailable(LongthreadError):
    """The tool's code cannot be run here: {reason}"""


class McpFailed(LongthreadError):
    """The MCP server {server} failed: {reason}"""


class McpToolFailed(LongthreadError):
    """The MCP server's tool failed: {reason}"""


# The catalog.


class CatalogInvalid(InvalidInput):
    """Nothing was changed, for this is not right: {problems}"""

    def _message(self) -> str:
        problems = [" ".join(str(problem).split()) for problem in self.details["problems"]]
        listed = problems[0] if len(problems) == 1 else "".join(f"\n  {problem}" for problem in problems)
        return f"Nothing was changed, for this is not right: {listed}"


class DefinitionNotFound(LongthreadError):
    """There is no {kind} {name}. {nearest}"""

    exit_code = 2


class DefinitionAmbiguous(InvalidInput):
    """Several {kind}s are called {name}. Give the id of the one that is meant: {ids}."""


class VersionNotFound(LongthreadError):
    """The {kind} {name} has no version {version}. {versions}"""

    exit_code = 2


class AgentOff(InvalidInput):
    """The agent {name} is switched off. `is_active: true` in its definition, applied, switches it on."""


class AgentOfThread(InvalidInput):
    """The conversation {thread} is the agent {name}'s. Ask it there, or begin another conversation."""


class DefinitionBuiltIn(InvalidInput):
    """The {kind} {name} is built in and stays. What you define goes under another name."""


class DefinitionInUse(LongthreadError):
    """The {kind} {name} is used by {users}. {remedy}"""

    exit_code = 4


# The server.


class ServerError(LongthreadError):
    """The server cannot start: {reason}"""

    exit_code = 7


class PortInUse(ServerError):
    """Port {port} of {host} is in use by another program. Is Longthread running already? Else give another one with
    --port or LONGTHREAD_PORT; 0 takes any free port."""


class AddressUnavailable(ServerError):
    """The server cannot listen on {host}, port {port}: {reason} Give another with --host and --port."""
