"""The changes of an apply, and their display."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from longthread.model.catalog import Definition, Kind, same

Action = Literal["created", "changed", "unchanged"]
_MARKS = {"created": "+", "changed": "~", "unchanged": "="}
_ABSENT = object()
_LONGEST = 160
"""Characters of a value in a line."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One changed field. `has_old` and `has_new` say whether there is a value."""

    path: str
    old: Any = None
    new: Any = None
    has_old: bool = True
    has_new: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a definition from `before`, None for a new one. `fields` are the changed fields, as people write
    them."""

    action: Action
    definition: Definition
    before: int | None
    fields: Sequence[FieldChange]
    where: str = ""

    @property
    def kind(self) -> Kind:
        return self.definition.kind

    @property
    def name(self) -> str:
        return self.definition.name

    def to_json(self) -> dict[str, Any]:
        """The change for a program."""
        fields = [
            {"path": each.path}
            | ({"old": each.old} if each.has_old else {})
            | ({"new": each.new} if each.has_new else {})
            for each in self.fields
        ]
        return {
            "kind": self.kind,
            "name": self.name,
            "id": self.definition.id,
            "action": self.action,
            "version": self.definition.version,
            "before": self.before,
            "changes": fields,
        }


def compared(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> Iterator[FieldChange]:
    """The differing fields of two objects, recursively."""
    for key in [*old, *(key for key in new if key not in old)]:
        before, after, inside = old.get(key, _ABSENT), new.get(key, _ABSENT), f"{path}.{key}" if path else key
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from compared(before, after, inside)
        elif before is _ABSENT:
            yield FieldChange(inside, new=after, has_old=False)
        elif after is _ABSENT:
            yield FieldChange(inside, old=before, has_new=False)
        elif not same(before, after):
            yield FieldChange(inside, before, after)


def lines(change: Change) -> Iterator[str]:
    """The lines of a change, for people."""
    version = f"v{change.definition.version}"
    if change.action == "changed":
        version = f"v{change.before} → {version}"
    note = "" if change.action == "unchanged" else f"  {version}"
    yield f"{_MARKS[change.action]} {change.kind} {change.name}{note}"
    if change.action == "changed":
        for field in change.fields:
            yield from _field(field)


def _field(field: FieldChange) -> Iterator[str]:
    if _is_long(field.old) and _is_long(field.new):
        yield f"    {field.path}:"
        found = difflib.unified_diff(field.old.splitlines(), field.new.splitlines(), lineterm="", n=1)
        yield from (f"      {_cut(line)}" for line in list(found)[2:])
    elif _is_names(field.old) and _is_names(field.new) and sorted(field.old) != sorted(field.new):
        gone = [f"- {name}" for name in field.old if name not in field.new]
        come = [f"+ {name}" for name in field.new if name not in field.old]
        yield f"    {field.path}: {', '.join([*gone, *come])}"
    else:
        old = _shown(field.old) if field.has_old else "nothing"
        new = _shown(field.new) if field.has_new else "nothing"
        yield f"    {field.path}: {old} → {new}"


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _shown(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
