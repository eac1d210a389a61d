"""Options that several commands take: moments as people write them, and conversations by what people call them."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Annotated, get_args

import typer

from longthread.errors import InvalidInput, ThreadNotFound, ThreadNotInStore
from longthread.model.language import end_of
from longthread.model.run import Protocol
from longthread.store import listing, log
from longthread.store.driver import Driver
from longthread.store.open import is_postgres

_database: ContextVar[str | None] = ContextVar("database", default=None)
"""The store that the command names by --database."""


def _note_database(given: str | None) -> str | None:
    _database.set(given)
    return given


SourceOption = Annotated[
    str | None,
    typer.Option("--source", "-s", help="What to ask: a database or data file, a folder of files, a URL, or demo."),
]
ThreadOption = Annotated[
    str | None,
    typer.Option(
        "--thread",
        "-t",
        help="Go on with this conversation: its id, the beginning of it, or last. "
        "With --source or LONGTHREAD_SOURCE, also the id of a new one.",
    ),
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", "-a", help="An agent of the catalog, by its name; by default the analyst."),
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="provider:model, or demo.")]
MaxSteps = Annotated[int | None, typer.Option("--max-steps", min=1, max=1000, help="Model calls before a run pauses.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        callback=_note_database,
        help="What holds the conversations: a file, a postgresql:// URL, or embedded.",
        metavar="STORE",
    ),
]
ReadOnly = Annotated[
    bool | None, typer.Option("--read-only", help="Read the store as it is: nothing is written to it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
ProtocolOption = Annotated[
    str,
    typer.Option(
        "--protocol",
        help="How the model speaks: by its tool calls, as JSON, in SQL, or what suits it.",
        metavar="auto|native|json|sql",
    ),
]
Serde = Annotated[
    str | None,
    typer.Option(
        "--serde", metavar="MODULE:ATTRIBUTE", help="The serializer of LangGraph's checkpoints, as your program has it."
    ),
]
AllowPickle = Annotated[
    bool,
    typer.Option("--allow-pickle", help="Read pickles of LangGraph's checkpoints. This runs the code that they name."),
]
Aes = Annotated[
    bool, typer.Option("--aes", help="LangGraph's checkpoints are encrypted with the key in LANGGRAPH_AES_KEY.")
]


def read_protocol(name: str) -> Protocol:
    """Return a protocol by its name. Raises InvalidInput."""
    for known in get_args(Protocol):
        if name == known:
            protocol: Protocol = known
            return protocol
    raise InvalidInput(reason=f"There is no protocol {name}. Use one of: {', '.join(get_args(Protocol))}.")


_AGE = re.compile(r"(\d+)\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def age(text: str) -> timedelta | None:
    """A number with s, m, h, d or w, such as 90d; None for anything else."""
    match = _AGE.fullmatch(text.strip())
    with suppress(OverflowError):
        return timedelta(seconds=int(match[1]) * _SECONDS[match[2]]) if match else None
    return None


def moment(text: str, option: str, *, ahead: bool, ends: bool = False) -> datetime:
    """A date or time (ISO 8601, of this machine's zone where it names none), or an age: so long ago, or `ahead`. What
    `ends` then does so at the end of a date.

    Raises:
        InvalidInput: it is neither; the message names the option.
    """
    span = age(text)
    with suppress(OverflowError, ValueError):
        if span is not None:
            return datetime.now(UTC) + (span if ahead else -span)
        found = datetime.fromisoformat(text.strip())
        found = end_of(found, text) if ends else found
        return found if found.tzinfo else found.astimezone()
    reason = f"{option} is {text!r}; allowed is a date or time such as 2027-05-08, or an age such as 30d."
    raise InvalidInput(reason=reason)


async def find_thread(
    store: Driver, given: str | None, *, user: str, may_be_new: bool = False, else_new: bool = False
) -> str | None:
    """The id of the thread that a person means by an id, the beginning of one, or `last`.

    Where the thread may be a new one, the beginning of another's id is not taken for that one; with `else_new` it is,
    and what is the beginning of none is a new one's id.

    Raises:
        ThreadNotFound: there is none like it, and it is not to be made.
        InvalidInput: several begin like that.
    """
    if given is None:
        return None
    if not given.strip():
        if not may_be_new and await _is_there(store, given, user=user):
            return given
        raise InvalidInput(reason="The name of the thread is empty. Give an id, the beginning of one, or last.")
    async with store.reading() as tx:
        if given == "last":
            latest = await listing.last_thread(tx, user_id=user)
            found = [latest] if latest is not None else []
        else:
            found = await listing.threads_that_begin(tx, given, user_id=user)
    if given != "last" and (may_be_new or given in found):
        return given
    if len(found) > 1:
        raise InvalidInput(reason=f"Several threads begin with {given}. Give more of the id.")
    if not found and else_new and given != "last":
        return given
    if not found:
        raise _name_missing(store, given)
    return found[0]


def _name_missing(store: Driver, thread: str) -> ThreadNotFound:
    given = _database.get()
    if not given:
        return ThreadNotFound(thread=thread)
    # Of an address of PostgreSQL, which may hold a password, what people may see.
    return ThreadNotInStore(thread=thread, database=store.where if is_postgres(given) else shlex.quote(given))


async def _is_there(store: Driver, thread_id: str, *, user: str) -> bool:
    async with store.reading() as tx:
        with suppress(ThreadNotFound):
            await log.find_row(tx, thread_id, user_id=user)
            return True
    return False
