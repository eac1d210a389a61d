"""A checkpoint's metadata as it is stored: JSON. Where an application's own serializer writes everything else, it also
writes what the application has put there."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata, get_serializable_checkpoint_metadata
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.langgraph.message_codec import is_own, read_through
from longthread.store.checkpoints import CheckpointRow

DELTA_COUNTERS = "counters_since_delta_snapshot"
"""Key of a checkpoint's metadata that names the delta channels that are made of what earlier tasks have written."""
_PLAIN = frozenset(("source", "step", "parents", "run_id", DELTA_COUNTERS))
"""What LangGraph writes, and what a store is searched by: ids and numbers."""
_SEALED = "longthread_sealed"
"""The rest, as the serializer packed it: its kind, and its bytes in base64."""
_FLAT = frozenset((str, int, bool, type(None)))
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def dumped(config: RunnableConfig, metadata: CheckpointMetadata, serde: SerializerProtocol) -> str:
    found: dict[str, Any] = {**get_serializable_checkpoint_metadata(config, metadata)}
    if is_own(serde):
        found = _sealed(found, serde)
    if all(map(_is_flat, found.values())):
        with suppress(TypeError):  # what the other encoder knows: a large number, half of a surrogate pair
            return orjson.dumps(found).decode()
    return _encoded(found)


def metadata_of(row: CheckpointRow, serde: SerializerProtocol) -> dict[str, Any]:
    """Raises RowDamaged, or SerializerNeeded."""
    found = row.about
    sealed = found.pop(_SEALED, None)
    if sealed is not None:
        found |= read_through(serde, sealed[0], base64.b64decode(sealed[1]), is_sealed=True)
    return found


def _sealed(found: Mapping[str, Any], serde: SerializerProtocol) -> dict[str, Any]:
    plain = {key: value for key, value in found.items() if key in _PLAIN}
    rest = {key: value for key, value in found.items() if key not in _PLAIN}
    if rest:
        kind, body = serde.dumps_typed(json.loads(_encoded(rest)))  # what comes back is JSON, as without a serializer
        plain[_SEALED] = [kind, base64.b64encode(body).decode()]
    return plain


def _encoded(found: Mapping[str, Any]) -> str:
    text = _ENCODER.encode(found)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(found, separators=(",", ":"), default=str)
    return text


def _is_flat(value: Any) -> bool:
    """Whether every encoder writes the value alike."""
    return type(value) in _FLAT or (type(value) is dict and _FLAT.issuperset(map(type, value.values())))
