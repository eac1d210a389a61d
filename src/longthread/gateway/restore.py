"""What a client dropped, put back exactly. Pure.

The newest reply that the request still holds, by the upstream and the family of models that are asked now, decides:
before its end go the hidden parts that its own call carried, and then its own. All of them or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from longthread.gateway.dialects.dialect import Dialect, Edit
from longthread.gateway.parts import Anchored, Part
from longthread.gateway.raw_json import Value, replaced
from longthread.store.gateway import HiddenPart


def edits(parts: Sequence[Part], ours: Sequence[HiddenPart], theirs: Iterable[Anchored], ends: int) -> dict[int, Edit]:
    """Return the changes that make the hidden parts before visible part `ends` exactly `ours`, by message."""
    visible = [part for part in parts if part.visible is not None]
    found: dict[int, Edit] = {}
    for each in theirs:
        if each.at < ends:
            edit = found.setdefault(each.part.item, Edit())
            if each.field is None:
                edit.drops.add(each.part.place)
            else:
                edit.fields[each.field] = None
    for at, after, field, raw in ours:
        anchor = visible[at]
        edit = found.setdefault(anchor.item, Edit())
        if field is None:
            edit.puts.append((anchor.place, after, raw))
        else:
            edit.fields[field] = raw
    return found


def without(hidden: Iterable[Anchored]) -> dict[int, Edit]:
    """Return the changes that take these hidden parts out, by message."""
    found: dict[int, Edit] = {}
    for each in hidden:
        edit = found.setdefault(each.part.item, Edit())
        if each.field is None:
            edit.drops.add(each.part.place)
        else:
            edit.fields[each.field] = None
    return found


def edited(dialect: Dialect, text: str, items: Sequence[Value], changes: dict[int, Edit]) -> str:
    """Return a request's text with changed messages; all others stay as they are, byte for byte."""
    raws = {number: text[items[number].start : items[number].end] for number in changes}
    new = {number: dialect.edited(raws[number], edit) for number, edit in changes.items()}
    if all(new.values()):
        return replaced(text, [(items[number].start, items[number].end, raw) for number, raw in new.items()])
    kept = [new.get(number, text[item.start : item.end]) for number, item in enumerate(items)]
    return replaced(text, [(items[0].start, items[-1].end, ",".join(raw for raw in kept if raw))])
