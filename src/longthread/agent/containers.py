"""Lists and objects in the fields of messages, copied for many messages at once."""

from __future__ import annotations

import marshal
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from operator import methodcaller
from typing import Any

from longthread.agent.messages import copied
from longthread.messages.fields import Fields

FLAT = frozenset((str, int, float, bool, type(None), bytes))
"""Types of values that need not be copied."""
COMPACT_BYTES = 2048
_EMPTY_OBJECT: dict[str, Any] = {}
_EMPTY_LIST: list[Any] = []
_flat_copied = methodcaller("copy")
Column = tuple[list[int], list[Any]]
"""The places of the messages whose field is of a kind, in their order, and what it is."""


class Containers:
    """Which fields of a list of messages are lists and objects, and how each is copied.

    One kind of field after the other: that is several times faster than one message after the other.
    """

    def __init__(self) -> None:
        # By the field's name.
        self._empty_objects: dict[str, Column] = {}
        self._empty_lists: dict[str, Column] = {}
        self._flat: dict[str, Column] = {}
        self._single: dict[str, Column] = {}
        self._nested: dict[str, Column] = {}

    def add(self, place: int, fields: Fields) -> None:
        """Note those of the next message. All that are empty become one object."""
        for name, value in fields.items():
            self._note(name, place, value)
            if value == {} or value == []:
                fields[name] = _EMPTY_OBJECT if type(value) is dict else _EMPTY_LIST

    def add_all(self, fields: Sequence[Fields], classes: Mapping[type, Sequence[int]], varied: Set[str]) -> None:
        """Note those of the first messages.

        Args:
            classes: the places of the messages of each class, which have the same fields.
            varied: fields that may be lists or objects. All others are texts and the like, or empty: the same in all
                messages of a class.
        """
        blank = {kind: fields[places[0]] for kind, places in classes.items()}
        for name in {name: None for having in blank.values() for name in having}:
            if name in varied:
                for place in _merged(classes[kind] for kind, having in blank.items() if name in having):
                    self._note(name, place, fields[place][name])
                continue
            for empty, table in (dict, self._empty_objects), (list, self._empty_lists):
                places = _merged(classes[kind] for kind, having in blank.items() if type(having.get(name)) is empty)
                if places:
                    table[name] = places, []

    def fill(self, fields: Sequence[Fields], first: int) -> None:
        """Give copies of the fields of the messages from place `first` on lists and objects of their own."""
        for name, (places, _) in self._empty_objects.items():
            for target in _at(fields, first, places)[0]:
                target[name] = {}
        for name, (places, _) in self._empty_lists.items():
            for target in _at(fields, first, places)[0]:
                target[name] = []
        for table, anew in (self._flat, _flat_copied), (self._single, _single_copied), (self._nested, _nested_copied):
            for name, (places, values) in table.items():
                targets, part = _at(fields, first, places)
                for target, value in zip(targets, map(anew, values[part]), strict=True):
                    target[name] = value

    def _note(self, name: str, place: int, value: Any) -> None:
        if type(value) not in FLAT:
            kind = self._kind(value)
            column = kind.get(name)
            if column is None:
                column = kind[name] = [], []
            column[0].append(place)
            column[1].append(_compact(value) if kind is self._nested else value)

    def _kind(self, value: dict[Any, Any] | list[Any]) -> dict[str, Column]:
        if not value:
            return self._empty_objects if type(value) is dict else self._empty_lists
        if type(value) is list and type(value[0]) is dict:
            return self._single if _is_single(value) else self._nested
        items = value.values() if isinstance(value, dict) else value
        return self._flat if FLAT.issuperset(map(type, items)) else self._nested


def _is_single(value: list[dict[Any, Any]]) -> bool:
    """Whether it is nothing but a call, or what looks like one: an object with a flat one under `args`."""
    args = value[0].get("args")
    if len(value) != 1 or type(args) is not dict or not FLAT.issuperset(map(type, args.values())):
        return False
    others = list(map(type, value[0].values()))
    others.remove(dict)
    return FLAT.issuperset(others)


def _single_copied(value: list[dict[str, Any]]) -> list[dict[str, Any]]:
    call = value[0].copy()
    call["args"] = call["args"].copy()
    return [call]


def _compact(value: Any) -> Any:
    """Containers in containers: as bytes, which are copied faster, unless there is much in them that need not be."""
    packed = marshal.dumps(value)
    return packed if len(packed) <= COMPACT_BYTES else value


def _nested_copied(value: Any) -> Any:
    return marshal.loads(value) if type(value) is bytes else copied(value)


def _merged(places: Iterable[Sequence[int]]) -> list[int]:
    return sorted(chain(*places))


def _at(fields: Sequence[Fields], first: int, places: list[int]) -> tuple[Iterable[Fields], slice]:
    """Of fields that stand from place `first` on, those at these places; and which of the places those are."""
    part = slice(bisect_left(places, first), bisect_left(places, first + len(fields)))
    if part.stop - part.start == len(fields):
        return fields, part
    chosen = places[part] if first == 0 else [place - first for place in places[part]]
    return map(fields.__getitem__, chosen), part
