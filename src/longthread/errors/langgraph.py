"""Errors of the saver and the store for LangGraph."""

from __future__ import annotations

from longthread.errors.base import LongthreadError
from longthread.errors.input import InvalidInput
from longthread.errors.store import ValueDamaged


class SaverClosed(LongthreadError):
    message = """The saver or store cannot be used: {reason} Use it inside its block, or open another with
    LongthreadSaver.from_conn_string(…)."""


class CalledOnItsLoop(LongthreadError):
    message = """`{method}` was called on the event loop of its own saver or store, and would wait for itself for ever.
    Use `await saver.{twin}(…)`, and ainvoke, astream, aget_state or aupdate_state of the graph. Or open it with a
    plain `with LongthreadSaver.from_conn_string(…)`: it then runs on a thread of its own."""
    method: str
    twin: str


class SerializerNotUsable(InvalidInput):
    message = """LongthreadSaver cannot use {serde}: {reason} Give it a serializer that stores messages too, such as
    LangGraph's JsonPlusSerializer, or an EncryptedSerializer around it."""
    serde: str


class SerializerNeeded(ValueDamaged):
    message = """What is stored was written through a serializer of the application's own, of kind {kind}, and cannot be
    read: {reason} Open the store with that serializer and its key, for example LongthreadSaver.from_conn_string(…,
    serde=EncryptedSerializer.from_pycryptodome_aes(key=…)). Nothing was changed. If it is the right key, the value is
    damaged: restore a backup."""
    kind: str


class CheckpointUnreadable(LongthreadError):
    message = "Checkpoint {checkpoint} of thread {thread} cannot be read: {reason}"
    checkpoint: str
    thread: str
