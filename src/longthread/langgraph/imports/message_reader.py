"""Decodes what LangGraph's serializer packed, as far as a conversation needs it."""

from __future__ import annotations

import sys
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_PYDANTIC_V2, JsonPlusSerializer

from longthread.langgraph.internals import DeltaSnapshot

_CLOSED = JsonPlusSerializer(allowed_msgpack_modules=None)
"""Builds nothing but what LangGraph knows to be safe."""


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
