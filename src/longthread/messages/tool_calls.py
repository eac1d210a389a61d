"""Tool calls of messages, as the log says them: in JSON, whatever their arguments are."""

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
"""Python reads and writes no whole number with many more."""
_LARGE = 10**_DIGITS


class Calls(NamedTuple):
    """A message's calls. What JSON cannot say of their arguments is said as near as it can: see `as_json`."""

    told: tuple[ToolCall, ...] = ()
    are_exact: bool = True
    """Whether JSON gives all arguments back, but for letters that no database holds."""


def calls_of(calls: Sequence[Mapping[str, Any]], message_id: str | None) -> Calls:
    """The calls of a message.

    Raises:
        MessageNotStorable: they are nested too deeply, or hold themselves.
    """
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
    """Whether it is an object of texts and the like: nearly all arguments are, however long the texts."""
    for key, value in args.items():
        kind = type(value)
        is_plain = kind is str or kind is bool or value is None or (kind is int and -_LARGE < value < _LARGE)
        if type(key) is not str or not is_plain:
            return False
    return True


def _is_json(args: dict[Any, Any]) -> bool:
    """Whether JSON gives an object back as it is."""
    try:
        marshal.dumps(args)  # refuses what is equal to what JSON says of it, and is of a class of its own
        return bool(loaded(dumped(args)) == args)
    except (TypeError, ValueError, RecursionError):
        return False


def as_json(value: Any) -> Any:
    """A value as JSON and every database can say it; the same value, where they can.

    A set is a list in an order that is always the same, a member of an enumeration its value, a key that is no text
    its text. What else is not of JSON is its text too.
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
    """The text of a key that is none, which no other key has."""
    name = told = key if isinstance(key := as_json(key), str) else json.dumps(key, ensure_ascii=False)
    number = 2
    while name in taken:
        name, number = f"{told} ({number})", number + 1
    return name


def holds_enum(value: Any) -> bool:
    """Whether there is a member of an enumeration in it. Some are equal to what JSON says of them, and are not it.

    Raises:
        RecursionError: it is nested too deeply, or holds itself.
    """
    try:
        marshal.dumps(value)  # far faster, and refuses whatever is of a class of its own
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
