"""Tool calls of messages as JSON in the log, whatever their arguments are."""

from __future__ import annotations

import json
import marshal
from collections.abc import Collection, Mapping, Sequence, Set
from enum import Enum
from math import isfinite
from typing import Any, NamedTuple

from longthread.errors import MessageNotStorable
from longthread.messages.compression import dumped, loaded
from longthread.messages.sanitize import storable
from longthread.model.entry import ToolCall

_SCALARS = frozenset((str, int, float, bool, type(None)))
_TEXT = frozenset((str,))
_DIGITS = 4000
"""Python refuses to convert whole numbers with many more."""
_LARGE = 10**_DIGITS


class Calls(NamedTuple):
    """A message's calls. Arguments that are no JSON are converted by `as_json`."""

    told: tuple[ToolCall, ...] = ()
    are_exact: bool = True
    """Whether JSON gives all arguments back, except for characters that no database holds."""


def calls_of(calls: Sequence[Mapping[str, Any]], message_id: str | None) -> Calls:
    """Return the calls of a message. Raises MessageNotStorable: they are nested too deeply, or contain themselves."""
    told, are_exact = [], True
    try:
        for call in calls:
            args, is_exact = _args(call["args"])
            told.append(ToolCall(storable(call["id"] or ""), storable(call["name"]), args))
            are_exact = are_exact and is_exact
    except RecursionError as error:
        raise MessageNotStorable(message_id=message_id, reason=str(error)) from error
    return Calls(tuple(told), are_exact)


def _args(args: Any) -> tuple[dict[str, Any], bool]:
    if type(args) is dict and (_is_flat(args) or _is_json(args)):
        return storable(args), True
    told = as_json(args)
    return (told if type(told) is dict else {}), False


def _is_flat(args: dict[Any, Any]) -> bool:
    """Return whether all values are texts, booleans, None or small whole numbers: nearly all arguments are."""
    for key, value in args.items():
        kind = type(value)
        is_plain = kind is str or kind is bool or value is None or (kind is int and -_LARGE < value < _LARGE)
        if type(key) is not str or not is_plain:
            return False
    return True


def _is_json(args: dict[Any, Any]) -> bool:
    try:
        marshal.dumps(args)  # refuses subclasses, which may equal their JSON
        return bool(loaded(dumped(args)) == args)
    except (TypeError, ValueError, RecursionError):
        return False


def as_json(value: Any) -> Any:
    """Convert a value to what JSON and every database can hold; such a value is returned itself.

    A set becomes a sorted list, a member of an enumeration its value, and anything else, keys too, its text.
    """
    kind = type(value)
    if kind is str:
        return storable(value)
    if kind is dict:
        return _object(value)
    if kind is list:
        return [as_json(item) for item in value]
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if -_LARGE < value < _LARGE else hex(value)
    if kind is float:
        return value if isfinite(value) else str(value)
    return _odd_as_json(value)


def _odd_as_json(value: Any) -> Any:
    if isinstance(value, Enum):
        return as_json(value.value)
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, Set):
        return sorted(map(as_json, value), key=json.dumps)
    if isinstance(value, str):
        return storable(str.__str__(value))
    for kind in (int, float):
        if isinstance(value, kind):
            return as_json(kind(value))
    return storable(str(value))


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    if _TEXT.issuperset(map(type, value)):
        return {storable(key): as_json(item) for key, item in value.items()}
    taken = {storable(key) for key in value if type(key) is str}
    made: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str else _name(key, taken)
        taken.add(name)
        made[storable(name)] = as_json(item)
    return made


def _name(key: Any, taken: Set[str]) -> str:
    """Return the text of a key that is no text, distinct from the other keys."""
    name = told = key if isinstance(key := as_json(key), str) else json.dumps(key, ensure_ascii=False)
    number = 2
    while name in taken:
        name, number = f"{told} ({number})", number + 1
    return name


def holds_enum(value: Any) -> bool:
    """Return whether it contains a member of an enumeration: some equal their JSON without being it. Raises
    RecursionError: it is nested too deeply, or contains itself."""
    try:
        marshal.dumps(value)  # far faster, and refuses subclasses
    except ValueError:
        return _has_enum(value)
    return False


def _has_enum(value: Any) -> bool:
    kind = type(value)
    if kind is dict or isinstance(value, Mapping):
        return _any_enum(value) or _any_enum(value.values())
    if kind is list or isinstance(value, list | tuple | Set):
        return _any_enum(value)
    return isinstance(value, Enum)


def _any_enum(values: Collection[Any]) -> bool:
    return not _SCALARS.issuperset(map(type, values)) and any(map(_has_enum, values))
