"""Limits the characters of a view's older messages (document 001, MESSAGE_COMPRESS_MAX_LENGTH)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from longthread.view.items import ViewPart

_LEAST = 20
"""The least characters of a cut result."""

_Parts = Mapping[int, Sequence[ViewPart]]
"""Parts by the place of their unit."""


def older(parts: _Parts, recent: int, pinned: int) -> list[int]:
    """The places of the units before the newest `recent` messages, without the pinned one."""
    count, places = 0, []
    for n in sorted(parts, reverse=True):
        if count >= recent and n != pinned:
            places.append(n)
        count += len(parts[n])
    return places[::-1]


def is_longer(parts: _Parts, most: int | None, recent: int, pinned: int) -> bool:
    """Whether the older messages have more than `most` characters (None: no limit)."""
    return most is not None and _length(parts[n] for n in older(parts, recent, pinned)) > most


def shortened(parts: _Parts, most: int, recent: int, pinned: int) -> dict[int, Sequence[ViewPart]]:
    """Cuts older results, and then drops the oldest units, to at most `most` characters."""
    places = older(parts, recent, pinned)
    results = sum(part.item.role == "tool" for n in places for part in parts[n])
    rest = _length([part for part in parts[n] if part.item.role != "tool"] for n in places)
    limit = max(_LEAST, (most - rest) // max(1, results))
    shown = dict(parts) | {n: [_cut(part, limit) for part in parts[n]] for n in places}
    for n in places:
        if _length(shown[each] for each in places if each in shown) <= most:
            break
        del shown[n]
    return shown


def _cut(part: ViewPart, limit: int) -> ViewPart:
    if part.item.role != "tool" or len(_text(part)) <= limit:
        return part
    return part.item.cut(limit, bare=part.bare)


def _length(units: Iterable[Sequence[ViewPart]]) -> int:
    return sum(len(_text(part)) for unit in units for part in unit)


def _text(part: ViewPart) -> str:
    return part.item.text if part.text is None else part.text
