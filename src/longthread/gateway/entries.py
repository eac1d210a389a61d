"""Parts as entries of the log. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, islice
from typing import Any

from longthread.gateway.parts import Part
from longthread.messages.fields import as_json, storable
from longthread.model.entry import Draft, Role, ToolCall
from longthread.model.ids import local_id
from longthread.model.wire import pack


@dataclass(frozen=True, slots=True)
class EntryParts:
    """The parts of one message that make one entry. `end` counts the visible parts of the branch up to its end."""

    parts: Sequence[Part]
    end: int

    @property
    def role(self) -> Role:
        return self.parts[0].role


def grouped(parts: Sequence[Part], start: int = 0) -> list[EntryParts]:
    """Cut parts into entries: a message's consecutive parts of one role; each tool's result alone.

    Hidden parts without a visible one join the next entry of their role, or else the one before.
    """
    found: list[list[Part]] = []
    for _, group in groupby(enumerate(parts), key=_entry_key):
        own = [part for _, part in group]
        if found and own[0].role == found[-1][0].role and (_is_hidden(found[-1]) or _is_hidden(own)):
            found[-1] += own
        else:
            found.append(own)
    counts = accumulate((sum(part.visible is not None for part in own) for own in found), initial=start)
    return [EntryParts(own, end) for own, end in zip(found, islice(counts, 1, None), strict=True)]


def _entry_key(numbered: tuple[int, Part]) -> tuple[int, str, int]:
    number, part = numbered
    return part.item, part.role, number if part.kind == "result" else -1


def _is_hidden(parts: Sequence[Part]) -> bool:
    return all(part.visible is None for part in parts)


def drafts(
    groups: Sequence[EntryParts], dialect: str, blocks: Callable[[int], Sequence[str]], **last: Any
) -> list[Draft]:
    """Return entries' drafts. `blocks` gives the texts of a message's blocks; `last` are fields of the last draft."""
    texts: dict[int, Sequence[str]] = {}
    made: list[Draft] = []
    for group in groups:
        for part in group.parts:
            if part.item not in texts:
                texts[part.item] = blocks(part.item)
        fields = last if group is groups[-1] else {}
        made.append(_draft(group.parts, dialect, [texts[part.item][part.place] for part in group.parts], fields))
    return made


def _draft(parts: Sequence[Part], dialect: str, raws: Sequence[str], fields: Mapping[str, Any]) -> Draft:
    result = next((part.value for part in parts if part.kind == "result"), None)
    text = storable(result[1] if result else "".join(part.value for part in parts if part.kind == "text"))
    return Draft(
        id=local_id(),
        role=parts[0].role,
        text=text,
        tool_calls=[_call(part.value) for part in parts if part.kind == "call"],
        tool_call_id=storable(str(result[0] or "")) if result else None,
        payload=pack(dialect, raws, text),
        **fields,
    )


def _call(value: tuple[Any, Any, Any]) -> ToolCall:
    id_, name, args = value
    return ToolCall(
        storable(str(id_ or "")), storable(str(name or "")), as_json(args) if isinstance(args, dict) else {}
    )
