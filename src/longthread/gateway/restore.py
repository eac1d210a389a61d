"""What a client dropped, put back exactly.

The newest reply that the request still holds, by the upstream and the family of models that are asked now, decides:
before its end go the hidden parts that its own call carried, and then its own. All of them or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from longthread.gateway.asked import Asked
from longthread.gateway.dialects.dialect import Edit
from longthread.gateway.parts import Anchored, Part
from longthread.gateway.raw_json import replaced
from longthread.store.gateway import HiddenPart


def edits(parts: Sequence[Part], ours: Sequence[HiddenPart], theirs: Iterable[Anchored], ends: int) -> dict[int, Edit]:
    """Return the changes that make the hidden parts before visible part `ends` exactly `ours`, by message."""
    visible = [part for part in parts if part.visible is not None]
    found = without(each for each in theirs if each.at < ends)
    for at, after, raw in ours:
        anchor = visible[at]
        found.setdefault(anchor.item, Edit()).puts.append((anchor.place, after, raw))
    return found


def without(hidden: Iterable[Anchored]) -> dict[int, Edit]:
    """Return the changes that take these hidden parts out, by message."""
    found: dict[int, Edit] = {}
    for each in hidden:
        found.setdefault(each.part.item, Edit()).drops.add(each.part.place)
    return found


def edited(asked: Asked, changes: dict[int, Edit]) -> str:
    """Return a request's text with changed messages; all others stay as they are, byte for byte."""
    text, items = asked.text, asked.items
    new = {
        number: _message(asked, text[items[number].start : items[number].end], changes[number]) for number in changes
    }
    if all(new.values()):
        return replaced(text, [(items[number].start, items[number].end, raw) for number, raw in new.items()])
    kept = [new.get(number, text[item.start : item.end]) for number, item in enumerate(items)]
    return replaced(text, [(items[0].start, items[-1].end, ",".join(raw for raw in kept if raw))])


def _message(asked: Asked, raw: str, edit: Edit) -> str:
    key = (asked.dialect.name, raw, frozenset(edit.drops), tuple(edit.puts))
    found = asked.recent.edited.get(key)
    if found is None:
        found = asked.dialect.edited(raw, edit)
        asked.recent.edited.put(key, found, len(raw) + len(found))
    return found
