"""Errors of the saver and the store for LangGraph."""

from __future__ import annotations

from longthread.errors.base import LongthreadError
from longthread.errors.input import InvalidInput


class SaverClosed(LongthreadError):
    message = """The saver or store cannot be used: {reason} Use it inside its block, or open another with
    LongthreadSaver.from_conn_string(…)."""


class CalledOnItsLoop(LongthreadError):
    message = """`{method}` was called on the event loop of its own saver or store, and would wait for itself for ever.
    Use `await saver.a{method}(…)`, and ainvoke, astream, aget_state or aupdate_state of the graph. Or open it with a
    plain `with LongthreadSaver.from_conn_string(…)`: it then runs on a thread of its own."""
    method: str


class SerializerNotUsable(InvalidInput):
    message = """LongthreadSaver cannot use {serde}: messages are stored as text, which recall searches, and would not
    be encrypted. Encrypt the disk or the database, or keep these threads with another saver."""
    serde: str


class CheckpointUnreadable(LongthreadError):
    message = "Checkpoint {checkpoint} of thread {thread} cannot be read: {reason}"
    checkpoint: str
    thread: str
