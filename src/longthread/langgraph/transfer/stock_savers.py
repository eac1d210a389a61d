"""Read the databases of LangGraph's own savers, SqliteSaver and PostgresSaver, also pickled or encrypted ones."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_PYDANTIC_V2, JsonPlusSerializer

from longthread.errors import CheckpointUnreadable, ExtraMissing, InvalidInput, NotACheckpointDatabase
from longthread.langgraph.internals import DeltaSnapshot
from longthread.langgraph.message_codec import SerializerFailed, calling_serializer
from longthread.langgraph.transfer import stock_items
from longthread.store.transfer.foreign import Foreign, import_errors, open_foreign, shown_address

_CLOSED = JsonPlusSerializer(allowed_msgpack_modules=None)
"""Builds nothing but what LangGraph knows to be safe."""
PICKLE = "pickle"


class MessageReader(JsonPlusSerializer):
    """Decodes messages, and leaves every other object packed, so that it is written elsewhere unchanged.

    The application's classes need not be importable and do not run. Equal messages of a thread are one object: a
    growing list is not decoded again from its beginning.
    """

    def __init__(self, *, pickle_fallback: bool = False) -> None:
        """With `pickle_fallback`, it reads pickles, which runs the code that they name."""
        super().__init__(pickle_fallback=pickle_fallback, __unpack_ext_hook__=self._unpack_extension)
        self._known: dict[bytes, BaseMessage] = {}

    def forget(self) -> None:
        """Drop the messages remembered of the last thread."""
        self._known.clear()

    def _unpack_extension(self, code: int, data: bytes) -> BaseMessage | DeltaSnapshot | ormsgpack.Ext:
        if code == EXT_DELTA_SNAPSHOT:
            value = ormsgpack.unpackb(data, ext_hook=self._unpack_extension, option=ormsgpack.OPT_NON_STR_KEYS)
            return DeltaSnapshot(value)
        message = self._known.get(data) or (_message(data) if code == EXT_PYDANTIC_V2 else None)
        if message is None:
            return ormsgpack.Ext(code, data)
        self._known[data] = message
        return message


def _message(data: bytes) -> BaseMessage | None:
    """Decode a packed pydantic message; None for another object, or where decoding would lose something."""
    try:
        module, *_ = ormsgpack.unpackb(data, ext_hook=_standard, option=ormsgpack.OPT_NON_STR_KEYS)
    except ValueError:
        return None
    if not module.startswith("langchain_core.messages."):
        return None
    value = _CLOSED.loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(EXT_PYDANTIC_V2, data))))
    return value if isinstance(value, BaseMessage) else None


def _standard(code: int, data: bytes) -> Any:
    """Decode a packed object of the standard library; ValueError for any other."""
    module, *_ = ormsgpack.unpackb(data, ext_hook=_standard, option=ormsgpack.OPT_NON_STR_KEYS)
    packed = ormsgpack.packb(ormsgpack.Ext(code, data))
    if module not in sys.stdlib_module_names:
        raise ValueError(module)
    value = _CLOSED.loads_typed(("msgpack", packed))
    if _CLOSED.dumps_typed(value)[1] != packed:
        raise ValueError(module)
    return value


def reader_of(serde: SerializerProtocol | None) -> tuple[SerializerProtocol, MessageReader]:
    """Return a serializer that reads what `serde` wrote, and its part that decodes messages.

    LangGraph's own kinds leave objects of your classes packed, see `MessageReader`. A pickle, and another class of
    serializer, does not.
    """
    if isinstance(serde, EncryptedSerializer):
        inner, reader = reader_of(serde.serde)
        return EncryptedSerializer(serde.cipher, inner), reader
    reader = MessageReader(pickle_fallback=type(serde) is JsonPlusSerializer and serde.pickle_fallback)
    is_usual = serde is None or type(serde) in (JsonPlusSerializer, MessageReader)
    return (reader if is_usual or serde is None else serde), reader


def serializer(*, at: str | None = None, pickle: bool = False, aes: bool = False) -> SerializerProtocol | None:
    """Return the serializer that a command's options name; None for LangGraph's usual one.

    Args:
        at: `module:attribute` of a serializer, or of a function that makes one. The working directory is searched too.
        pickle: read pickles, which runs the code that they name.
        aes: decrypt with the key in LANGGRAPH_AES_KEY, which LangGraph reads.

    Raises:
        InvalidInput: there is none there, the key is missing or has a wrong length, or pycryptodome is not installed.
    """
    if at is not None and (pickle or aes):
        raise InvalidInput(reason="Give --serde alone: it says itself how values are pickled and encrypted.")
    if at is not None:
        return _import_serializer(at)
    plain = JsonPlusSerializer(pickle_fallback=True) if pickle else None
    if not aes:
        return plain
    try:
        return EncryptedSerializer.from_pycryptodome_aes(plain or JsonPlusSerializer())
    except ImportError as error:
        reason = "--aes needs the package pycryptodome, as LangGraph does: pip install pycryptodome."
        raise InvalidInput(reason=reason) from error
    except ValueError as error:
        raise InvalidInput(reason=f"--aes needs the key: {error}") from error


def _import_serializer(at: str) -> SerializerProtocol:
    module, colon, attribute = at.partition(":")
    if not colon or not module or not attribute:
        raise InvalidInput(reason=f"--serde {at} names no serializer. Give module:attribute, such as app:serde.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(reason=f"--serde {at} cannot be imported: {error}.") from error
    if isinstance(found, type) or not hasattr(found, "loads_typed"):
        found = found() if callable(found) else found
    if not isinstance(found, SerializerProtocol):
        raise InvalidInput(reason=f"--serde {at} is of type {type(found).__name__}, which is no serializer.")
    return found


def why_unreadable(kind: str, error: Exception) -> str:
    """Return why a value of this type could not be read, and what reads it."""
    unknown, cipher = isinstance(error, NotImplementedError), kind.partition("+")[2]
    if unknown and kind.startswith(PICKLE):
        return (
            "it is pickled, and reading a pickle runs code. If you trust the database, give --allow-pickle, or in a "
            "program serde=JsonPlusSerializer(pickle_fallback=True)"
        )
    if unknown and cipher:
        return f"it is encrypted with {cipher}. Give --aes, or --serde or serde= with the serializer that wrote it"
    said = str(error) or type(error).__name__
    return f"it cannot be decrypted: {said}" if cipher and isinstance(error, ValueError) else said


_NEEDED = {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"}
_WRITES = {"sqlite": "writes", "postgres": "checkpoint_writes"}


@dataclass(frozen=True, slots=True)
class CheckpointAddress:
    """A checkpoint of a thread, its parent's id, and how many writes it has."""

    ns: str
    id: str
    writes: int
    parent: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.ns, self.id


class StockCheckpoints:
    """The checkpoints in another program's database; `saver` reads them, and need not be there to list them."""

    def __init__(self, foreign: Foreign, saver: Any = None, reader: MessageReader | None = None) -> None:
        self.foreign = foreign
        self._saver = saver
        self._reader = reader or MessageReader()

    async def threads(self) -> dict[str, int]:
        """Count the checkpoints of each thread, oldest thread first."""
        if not_a_saver(self.foreign) is not None:
            return {}
        rows = await self.foreign.tx.fetch("foreign_threads")
        return {row["thread_id"]: row["checkpoints"] for row in rows}

    async def checkpoints(self, thread_id: str) -> list[CheckpointAddress]:
        """List the checkpoints of a thread, of all namespaces, oldest first."""
        self._reader.forget()
        rows = await self.foreign.tx.fetch("foreign_checkpoints", thread_id=thread_id)
        return sorted((CheckpointAddress(**row) for row in rows), key=lambda a: (a.id, a.ns))

    async def users(self, thread_id: str, keys: Sequence[str]) -> list[str]:
        """List the users whom the metadata of a thread's checkpoints names under the first of these keys that it has,
        in the order of the checkpoints."""
        rows = await self.foreign.tx.fetch("foreign_metadata", thread_id=thread_id) if keys else []
        named = (_user_in(row["metadata"], keys) for row in rows)
        return list(dict.fromkeys(user for user in named if user))

    async def read(self, thread_id: str, address: CheckpointAddress) -> CheckpointTuple:
        """Read a checkpoint with its values and writes.

        Raises:
            CheckpointUnreadable: its bytes cannot be decoded; the message says which, and why.
            StoreError: the database failed.
        """
        where = {"thread_id": thread_id, "checkpoint_ns": address.ns, "checkpoint_id": address.id}
        try:
            with calling_serializer(), import_errors():
                found: CheckpointTuple | None = await self._saver.aget_tuple({"configurable": where})
        except SerializerFailed as failed:
            reason = await self._why_unreadable(thread_id, address, failed)
            raise CheckpointUnreadable(thread=thread_id, checkpoint=address.id, reason=f"{reason}.") from failed.error
        if found is None or not _is_whole(found):
            # Damaged bytes may well be those of something else.
            reason = "its bytes are damaged, and are not a checkpoint's."
            raise CheckpointUnreadable(thread=thread_id, checkpoint=address.id, reason=reason)
        return found

    async def _why_unreadable(self, thread_id: str, address: CheckpointAddress, failed: SerializerFailed) -> str:
        """Say which value of a checkpoint cannot be read, and why."""
        rows = await self.foreign.tx.fetch("foreign_values", thread_id=thread_id, ns=address.ns, id=address.id)
        for row in rows:
            try:
                if row["type"] not in (None, "empty"):
                    with calling_serializer():
                        self._saver.serde.loads_typed((row["type"], row["value"]))
            except SerializerFailed as of_value:
                channel = f"channel {row['channel']}: " if row["channel"] else ""
                return channel + why_unreadable(row["type"], of_value.error)
        return str(failed)

    async def paths(self, thread_id: str, address: CheckpointAddress) -> dict[str, str]:
        """Return the path of each task that wrote on a checkpoint: it determines their order."""
        if not _has_paths(self.foreign):
            return {}
        rows = await self.foreign.tx.fetch("foreign_paths", thread_id=thread_id, ns=address.ns, id=address.id)
        return {row["task_id"]: row["task_path"] for row in rows}


def _user_in(metadata: Any, keys: Sequence[str]) -> str:
    try:
        found = metadata if isinstance(metadata, dict) else json.loads(metadata or b"{}")
    except ValueError:
        return ""
    named = (found.get(key) for key in keys) if isinstance(found, dict) else ()
    return next((str(user) for user in named if isinstance(user, str | int) and str(user)), "")


_PARTS = {"id": str, "channel_values": dict, "channel_versions": dict, "versions_seen": dict}


def _is_whole(found: CheckpointTuple) -> bool:
    checkpoint: Any = found.checkpoint
    if not isinstance(checkpoint, dict) or not isinstance(found.metadata, dict):
        return False
    return all(isinstance(checkpoint.get(name), kind) for name, kind in _PARTS.items())


@asynccontextmanager
async def open_stock(address: str, serde: SerializerProtocol | None = None) -> AsyncIterator[StockCheckpoints]:
    """Open the database of a SqliteSaver or SqliteStore (a file) or of a PostgresSaver or PostgresStore (a
    `postgresql://` URL) in one snapshot.

    `serde` is the serializer that wrote it, if that was not LangGraph's usual one.

    Raises:
        NotACheckpointDatabase: it is none; the message says why.
        ExtraMissing: the package of the stock saver is not installed.
    """
    async with AsyncExitStack() as stack:
        foreign = await stack.enter_async_context(open_foreign(address, NotACheckpointDatabase))
        reading, reader = reader_of(serde)
        reason = not_a_saver(foreign)
        if reason and not stock_items.are_there(foreign):
            raise NotACheckpointDatabase(where=shown_address(address), reason=reason)
        yield StockCheckpoints(foreign, None if reason else await _saver(foreign, reading, stack), reader)


def not_a_saver(foreign: Foreign) -> str | None:
    """Return why a database is none of LangGraph's own savers; None if it is one."""
    tables, writes = foreign.tables, _WRITES[foreign.dialect]
    if "entries" in tables and "parent_seq" in tables["entries"].by_name:
        return "it is a Longthread store, and `longthread db copy` copies those."
    if "checkpoints" not in tables or writes not in tables:
        return f"it has no tables `checkpoints` and `{writes}`."
    missing = sorted(_NEEDED - tables["checkpoints"].by_name.keys())
    return f"its table `checkpoints` has no column `{missing[0]}`." if missing else None


async def _saver(foreign: Foreign, serde: SerializerProtocol, stack: AsyncExitStack) -> Any:
    module, kind = load_stock("checkpoint", "Saver", foreign.dialect, "Reading what {} wrote")
    if foreign.dialect == "postgres":
        return kind(foreign.connection, serde=serde)
    connection = await stack.enter_async_context(module.aiosqlite.Connection(lambda: foreign.connection, 64))
    saver = kind(connection, serde=serde)
    # Its setup would create or migrate tables: an import writes nothing to its source.
    saver.is_setup, saver._has_task_path = True, _has_paths(foreign)
    return saver


def load_stock(part: str, suffix: str, dialect: Literal["sqlite", "postgres"], doing: str) -> tuple[Any, Any]:
    """Return the module and the class of LangGraph's own saver or store. Raises `ExtraMissing`; `doing` says with the
    class's name what it is needed for."""
    name = f"Async{dialect.capitalize()}{suffix}"
    try:
        module = importlib.import_module(f"langgraph.{part}.{dialect}.aio")
    except ImportError as error:
        package = f"langgraph-checkpoint-{dialect}"
        raise ExtraMissing(what=doing.format(name), package=package, extra="import") from error
    return module, getattr(module, name)


def _has_paths(foreign: Foreign) -> bool:
    return "task_path" in foreign.tables[_WRITES[foreign.dialect]].by_name
