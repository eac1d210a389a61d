"""Serializers of LangGraph's own savers, to read what they wrote, also where it is pickled or encrypted."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_PYDANTIC_V2, JsonPlusSerializer

from longthread.errors import InvalidInput
from longthread.langgraph.internals import DeltaSnapshot

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
        super().__init__(pickle_fallback=pickle_fallback, __unpack_ext_hook__=self._unpacked)
        self._known: dict[bytes, BaseMessage] = {}

    def forget(self) -> None:
        """Drop the messages remembered of the last thread."""
        self._known.clear()

    def _unpacked(self, code: int, data: bytes) -> BaseMessage | DeltaSnapshot | ormsgpack.Ext:
        if code == EXT_DELTA_SNAPSHOT:
            value = ormsgpack.unpackb(data, ext_hook=self._unpacked, option=ormsgpack.OPT_NON_STR_KEYS)
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
        return _imported(at)
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


def _imported(at: str) -> SerializerProtocol:
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
