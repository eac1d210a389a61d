"""What a client dropped, put back exactly.

The newest reply that the request still holds, by the upstream and the family of models that are asked now, decides:
before its end go the hidden parts that its own call carried, and then its own. All of them or none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from longthread.gateway.asked import Asked
from longthread.gateway.dialects.dialect import Edit, HiddenMissing
from longthread.gateway.parts import Anchored
from longthread.gateway.raw_json import replaced
from longthread.gateway.recent import ReadItems, Restored
from longthread.store.gateway import HiddenPart


def restored(asked: Asked, ours: Sequence[HiddenPart], ends: int) -> Asked:
    """Return a request whose hidden parts before visible part `ends` are exactly `ours`.

    What was restored of the conversation before is not restored anew.
    """
    theirs = asked.indexed.hidden_before(ends)
    known = _known(asked, ours, theirs)
    first, begin = (known.count, known.items.cut.items[: known.end]) if known else (0, b"")
    changes = (
        _edits(asked, ours[len(known.ours) :], theirs[len(known.theirs) :]) if known else _edits(asked, ours, theirs)
    )
    last = max(first, _finished(asked, ends))
    if last:
        begin += _items(asked, changes, first, last)
    items = begin + _items(asked, changes, last, len(asked.conversation.cut.spans))
    found = asked.with_items(items, _first(known.items, items) if known else None)
    if last:
        before = bisect_left(theirs, last - asked.frame_count, key=lambda each: each.part.item)
        put = bisect_left(ours, last - asked.frame_count, key=lambda each: _item(asked, each[0]))
        kept = Restored(last, ours[:put], theirs[:before], found.conversation, len(begin))
        asked.recent.note(asked.conversation, kept)
    return found


def edited(asked: Asked, hidden: Iterable[Anchored]) -> Asked:
    """Return a request without some hidden parts. All else stays as it is, byte for byte."""
    return with_hidden(asked, (), hidden)


def with_hidden(asked: Asked, puts: Iterable[HiddenPart], drops: Iterable[Anchored]) -> Asked:
    """Return a request with some hidden parts put in, and others taken out. All else stays as it is, byte for byte."""
    items = _items(asked, _edits(asked, puts, drops), 0, len(asked.conversation.cut.spans))
    return asked.with_items(items, _first(asked.conversation, items))


def with_stand_ins(asked: Asked, missing: HiddenMissing) -> Asked | None:
    """Return a request as the provider takes it without the hidden parts that it misses; None if that changes nothing.
    Raises ValueError: it cannot be read then."""
    found = asked
    for name, text in missing.fields.items():
        if name in found.fields:
            found = found.with_field(name, text)
    if missing.stand_in is not None:
        cut = found.conversation.cut
        spans = enumerate(cut.spans[found.frame_count :], found.frame_count)
        new = [(start, end, missing.stand_in(cut.item(number)).encode()) for number, (start, end) in spans]
        changes = [each for each in new if each[2] != cut.items[each[0] : each[1]]]
        found = found.with_items(replaced(cut.items, changes)) if changes else found
    return found if found is not asked else None


def _known(asked: Asked, ours: Sequence[HiddenPart], theirs: Sequence[Anchored]) -> Restored | None:
    """Return the first items as they were restored before, if they would be the same now."""
    found = asked.conversation.restored
    if found is None:
        return None
    put, dropped, count = len(found.ours), len(found.theirs), found.count - asked.frame_count
    is_same = ours[:put] == found.ours and theirs[:dropped] == found.theirs
    others = [_item(asked, at) for at, _, _ in ours[put : put + 1]]
    others += [each.part.item for each in theirs[dropped : dropped + 1]]
    return found if is_same and all(item >= count for item in others) else None


def _item(asked: Asked, visible: int) -> int:
    """Return the number of the item that has a visible part."""
    return asked.parts[asked.indexed.places[visible]].item


def _finished(asked: Asked, ends: int) -> int:
    """Return how many items, the instructions included, are before visible part `ends`; 0 if one goes on behind it."""
    if not ends:
        return 0
    last = _item(asked, ends - 1)
    goes_on = ends < len(asked.nodes) and _item(asked, ends) == last
    return 0 if goes_on else asked.frame_count + last + 1


def _first(read: ReadItems, items: bytes) -> ReadItems | None:
    """Return the first ones of what was read that a list has, too."""
    count = read.cut.common(items, 0)
    return read.first(count) if count > read.frame_count else None


def _edits(asked: Asked, puts: Iterable[HiddenPart], drops: Iterable[Anchored]) -> dict[int, Edit]:
    """Return the changes that put hidden parts in and take others out, by item."""
    found: dict[int, Edit] = {}
    for each in drops:
        found.setdefault(each.part.item, Edit()).drops.add(each.part.place)
    for at, after, raw in puts:
        anchor = asked.parts[asked.indexed.places[at]]
        found.setdefault(anchor.item, Edit()).puts.append((anchor.place, after, raw))
    return found


def _items(asked: Asked, changes: Mapping[int, Edit], first: int, last: int) -> bytes:
    """Return a list's items from `first` to the one before `last`, with the changed ones changed. One that has nothing
    left goes, with its comma."""
    items, spans = asked.conversation.cut.items, asked.conversation.cut.spans
    pieces = [] if first else [items[: spans[0][0]] if spans else items]
    has_before = first > 0
    for number in range(first, last):
        start, end = spans[number]
        edit = changes.get(number - asked.frame_count)
        item = items[start:end]
        new = asked.dialect.edited(item.decode(), edit).encode() if edit else item
        if new:
            pieces += [items[spans[number - 1][1] : start], new] if has_before else [new]
            has_before = True
    return b"".join(pieces)
