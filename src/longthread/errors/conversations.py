"""Errors of threads, their runs and memories."""

from __future__ import annotations

from longthread.errors.base import LongthreadError

__all__ = [
    "BoardFull",
    "BoardNotFound",
    "CallNotOpen",
    "CardNotFound",
    "EntryNotFound",
    "JobLost",
    "KeyReused",
    "LeaseLost",
    "MemoryNotFound",
    "MessageTaken",
    "NotAQuestion",
    "NotPending",
    "NotSavable",
    "NotSupported",
    "NothingAsked",
    "NothingOnBoard",
    "NothingToResume",
    "NothingToShare",
    "NothingToStop",
    "QuestionNotFound",
    "QuestionsWait",
    "QueueFull",
    "RunCrashed",
    "RunInProgress",
    "RunNotFound",
    "RunRepeated",
    "RunTimeUp",
    "RunWaiting",
    "ShareNotFound",
    "ThreadBegunAnew",
    "ThreadConflict",
    "ThreadNotFound",
    "ThreadNotInStore",
    "ThreadTaken",
    "TooManyMemories",
]


class ThreadNotFound(LongthreadError, exit_code=2):
    message = "There is no thread {thread}. `longthread threads list` shows those there are."
    thread: str


class ThreadNotInStore(ThreadNotFound, code="thread_not_found"):
    """Of a store that the command names: the one that lists its threads must name it, too."""

    message = "There is no thread {thread}. `longthread threads list --database {database}` shows those there are."
    database: str


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


class MessageTaken(LongthreadError, exit_code=2):
    message = """Thread {thread} has another message with the id {entry}, and a message does not change. Give another
    id, or none. To say something else in its place, append it behind the same parent."""
    thread: str
    entry: str


class CallNotOpen(LongthreadError, exit_code=2):
    message = """Thread {thread} has no call {call} that waits for its result at this place. Append the assistant's
    message with its tool_calls first, and the results right behind it, each once."""
    thread: str
    call: str


class NotAQuestion(LongthreadError, exit_code=2):
    message = """Entry {entry} of thread {thread} is no question, and answers none. Only questions can be edited, or
    answered again."""
    thread: str
    entry: str


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


class RunTimeUp(LongthreadError, exit_code=6):
    message = """The run took longer than {seconds} seconds (LONGTHREAD_RUN_TIMEOUT), and was ended. What was done is
    kept: reply "continue", and it goes on."""
    seconds: str


class QuestionsWait(RunInProgress):
    message = """Questions wait on thread {thread}, the next one is {run}. Wait for them, remove them, or ask with
    `when_busy` enqueue."""


class QueueFull(LongthreadError, exit_code=4):
    message = """{count} questions wait already, and a user may have {limit}. Wait until some of them are answered, or
    remove some. The operator of the server can raise LONGTHREAD_MAX_QUEUED."""
    count: int
    limit: int


class QuestionNotFound(LongthreadError, exit_code=2):
    message = """No question {question} waits on thread {thread}: it has begun, it was removed, or there never was
    one."""
    thread: str
    question: str


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


class JobLost(LongthreadError, exit_code=4):
    message = """The work ({kind}) was broken off: this process could not renew its row in the table workers, so others
    took it for dead. What was done is kept, and another process goes on with the rest; a command can be given again."""
    kind: str


class RunNotFound(LongthreadError, exit_code=2):
    message = "Thread {thread} has no run {run}."
    thread: str
    run: str


class RunCrashed(LongthreadError, exit_code=4, code="crashed"):
    message = """The process died {count} times in a row while it executed run {run}, and no step was finished in
    between: something in the run ends processes. The server's log and its memory limit may say what. `longthread resume
    {thread}` tries again."""
    thread: str
    run: str
    count: int


class NothingAsked(LongthreadError, exit_code=2):
    message = """Nothing is asked on thread {thread}: the last message is not a user's with text, `resume` answers no
    interrupt, and there is no run {run} to watch."""
    thread: str
    run: str


class NotSupported(LongthreadError, exit_code=2):
    message = "{what} cannot be used here: {reason}"
    what: str
    reason: str


class RunRepeated(RunInProgress):
    message = "Run {run} on thread {thread} answers this question already: it was sent before. Watch that run."


class KeyReused(LongthreadError, exit_code=2):
    message = """The Idempotency-Key {key} was sent with another request within the last day. Use a new key for each
    question, and the same one only to send the same request again."""
    key: str


class NothingToResume(LongthreadError, exit_code=2):
    message = """Thread {thread} has no paused, stopped or interrupted run to resume. Ask a question with `longthread
    ask --thread {thread}`."""
    thread: str


class NothingToStop(NothingToResume):
    message = "Thread {thread} has no run to stop: its last one has ended."


class ShareNotFound(LongthreadError, exit_code=2):
    message = "This link shows nothing: it has expired or was revoked, or there never was one. Ask for a new link."


class NothingToShare(LongthreadError, exit_code=2):
    message = "Thread {thread} is empty: there is nothing to share yet."
    thread: str


class BoardNotFound(LongthreadError, exit_code=2):
    message = "There is no board {board}. Choose one of your boards."
    board: str


class CardNotFound(LongthreadError, exit_code=2):
    message = "This board has no card {card}. Load the board again."
    card: str


class BoardFull(LongthreadError, exit_code=2):
    message = "There are {most} {what} already, and no more fit. Delete some that you do not need."
    what: str
    most: int


class NotSavable(LongthreadError, exit_code=2):
    message = """The result of step {step} cannot be saved to a board: a tool with values of its own gave it, and its
    query cannot be run again. Save one of a query."""
    step: int


class NothingOnBoard(LongthreadError, exit_code=2):
    message = "This board is empty: there is nothing to share yet. Save a result to it first."
