"""The parts of a conversation: what the model sees, what only providers read, and what is computed of both. Pure.

A part is one text, picture, call or result, because clients cut messages differently. The visible ones make the
tree; a hidden one (thinking, a signature, encrypted reasoning) has an anchor: the visible part that it stands
before.

A longer conversation goes on from what is computed of its beginning: the work is that of its new parts.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from longthread.model.entry import Role

_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str).encode
_MAYBE_WHOLE = re.compile(r"\d(?:\.0[,\]}]|e[+-])")
"""In canonical JSON that may hold a whole number with a fraction or an exponent."""
PartKind = Literal["text", "call", "result", "reference", "other"]


class Part(NamedTuple):
    """A part of a message.

    Attributes:
        role: the entry's role; a tool's result is `tool`.
        kind: of a visible part.
        visible: the bytes that the hash takes; None for a hidden part.
        hidden: the bytes by which hidden parts are compared; None for a visible one, and for a field that is kept but
            never restored.
        item: the number of its message or item in the request or the reply.
        place: its number in the dialect's `blocks` of the message.
        value: of a text its characters, of a call `(id, name, arguments)`, of a result `(call id, text)`,
            of thinking its signature.
    """

    role: Role
    kind: PartKind
    visible: bytes | None
    hidden: bytes | None
    item: int
    place: int
    value: Any = None


class Anchored(NamedTuple):
    """A hidden part at its place: before the visible part number `at`, or, with `after`, following it."""

    at: int
    after: bool
    key: bytes
    part: Part


def visible_json(value: Any, ignored: frozenset[str]) -> bytes:
    """Return a value's canonical JSON without the keys that the model does not see. JavaScript writes 1.0 as 1."""
    seen = _without(value, ignored) if ignored else value
    text = _canonical(seen)
    if _MAYBE_WHOLE.search(text):
        text = _canonical(_with_whole_numbers(seen))
    return text.encode("utf-8", "surrogatepass")


def text_bytes(text: str) -> bytes:
    return b"text\x00" + text.encode("utf-8", "surrogatepass")


def loose_text_bytes(text: str) -> bytes:
    """Return the same for vendors that bind nothing to what went before: one line break at the end costs nothing."""
    return text_bytes(text.removesuffix("\n"))


def visible_parts(parts: Iterable[Part]) -> list[Part]:
    return [part for part in parts if part.visible is not None]


def anchor_hidden(parts: Iterable[Part], start: int = 0) -> list[Anchored]:
    """Return the hidden parts with their anchors. `start` is the number of the first visible part.

    A hidden part belongs to the next visible part of its run of one role; at the end of a run, to the one before. In a
    run without any it belongs to the next one.
    """
    found: list[Anchored] = []
    number = start
    for _, run in groupby(parts, key=attrgetter("role")):
        first, waiting = number, list[Part]()
        for part in run:
            if part.visible is None:
                waiting.append(part)
            else:
                found += _anchor_parts(waiting, number, after=False)
                waiting.clear()
                number += 1
        found += _anchor_parts(waiting, number, after=number > first)
    return found


def _anchor_parts(parts: Iterable[Part], number: int, *, after: bool) -> list[Anchored]:
    return [Anchored(number - after, after, part.hidden, part) for part in parts if part.hidden is not None]


def chain(hidden: Iterable[Anchored]) -> bytes:
    """Return the hash of hidden parts in their order, at their places."""
    return blake2b(b"".join(map(hash_input, hidden)), digest_size=16).digest()


def hash_input(each: Anchored) -> bytes:
    """Return what the hash of hidden parts takes of one."""
    return b"%d %d %d %s" % (each.at, each.after, len(each.key), each.key)


def seals_of(hidden: Iterable[Anchored]) -> set[str]:
    """Return the signatures of hidden parts."""
    return {each.part.value for each in hidden if isinstance(each.part.value, str) and each.part.value}


def count_changes(theirs: Sequence[Anchored], now: Sequence[Anchored]) -> tuple[int, int]:
    """Return how many hidden parts were put in, and how many taken out."""
    return _count_others(now, theirs), _count_others(theirs, now)


def _count_others(some: Sequence[Anchored], others: Sequence[Anchored]) -> int:
    """Return how many hidden parts are not among the others."""
    if not some or not others:
        return len(some)
    there = {(each.at, each.key) for each in others}
    return sum((each.at, each.key) not in there for each in some)


def digests(root: bytes, parts: Iterable[Part]) -> list[bytes]:
    """Return a digest of each visible part, which stands for it and for all before it. The last one is the root of what
    follows."""
    found: list[bytes] = []
    digest = root
    for part in parts:
        assert part.visible is not None
        digest = blake2b(b"%s %s %s" % (digest, part.role.encode(), part.visible), digest_size=16).digest()
        found.append(digest)
    return found


def digest_alone(parts: Iterable[Part]) -> bytes:
    """Return a digest of what visible parts say, whatever went before. It does not matter how a client cuts its texts,
    or what blanks are around them."""
    said: list[bytes] = []
    for is_text, run in groupby(parts, key=lambda part: part.kind == "text"):
        if is_text:
            text = "".join(part.value for part in run).strip()
            said += [text_bytes(text)] if text else []
        else:
            said += [part.visible for part in run if part.visible is not None]
    framed = b"".join(b"%d %s" % (len(each), each) for each in said)
    return blake2b(framed, digest_size=16).digest()


def node_of(digest: bytes) -> int:
    """Return a digest as a number of 64 bits, as it is stored and looked up."""
    return int.from_bytes(digest[:8], "big", signed=True)


def root_of(user: str, dialect: str, owner: str | None = None) -> bytes:
    """Return the root of an owner's trees: no other owner has the same nodes. Without an owner, return the root of the
    user's conversations that no client has continued yet."""
    text = f"{dialect}\n{user}" if owner is None else f"{dialect}\n{user}\n{owner}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def name_node(root: bytes, kind: str, name: str) -> int:
    """Return the number under which something is found by its own name, such as the provider's id of a response."""
    digest = blake2b(f"{kind}\n{name}".encode("utf-8", "surrogatepass"), key=root, digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _without(value: Any, ignored: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(each, ignored) for key, each in value.items() if key not in ignored}
    if isinstance(value, list):
        return [_without(each, ignored) for each in value]
    return value


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _with_whole_numbers(each) for key, each in value.items()}
    return [_with_whole_numbers(each) for each in value] if isinstance(value, list) else value


_at = attrgetter("at")


def _new_hash() -> Any:
    return blake2b(digest_size=16)


@dataclass(frozen=True, slots=True)
class IndexedParts:
    """The parts of a conversation, in order.

    Attributes:
        root: what its digests begin with.
        places: where the visible parts are among all parts.
        digests, nodes: of the visible parts: each stands for its part and all before it.
        hidden: the hidden parts with their anchors.
    """

    root: bytes
    parts: Sequence[Part] = ()
    places: Sequence[int] = ()
    digests: Sequence[bytes] = ()
    nodes: Sequence[int] = ()
    hidden: Sequence[Anchored] = ()
    _hashes: Sequence[bytes] = (_new_hash().digest(),)
    """Of no hidden part, of the first one, of the first two, and so on."""
    _run: int = 0
    """Where the last run of one role begins. Anchors in it change when it goes on."""
    _certain: int = 0
    """How many hidden parts are before that run."""
    _hash: Any = field(default_factory=_new_hash)
    """The state of the hash after them."""

    @property
    def end(self) -> bytes:
        """The root of what follows."""
        return self.digests[-1] if self.digests else self.root

    def followed_by(self, new: Sequence[Part]) -> IndexedParts:
        """Return these parts, followed by new ones."""
        if not new:
            return self
        start = len(self.parts)
        places = [place for place, part in enumerate(new, start) if part.visible is not None]
        made = digests(self.end, [new[place - start] for place in places])
        return self._with_hidden(
            [*self.parts, *new], [*self.places, *places], [*self.digests, *made], [*self.nodes, *map(node_of, made)]
        )

    def first(self, count: int) -> IndexedParts:
        """Return the first parts."""
        if count == len(self.parts):
            return self
        visible = bisect_left(self.places, count)
        none = IndexedParts(self.root)
        return none._with_hidden(
            self.parts[:count], self.places[:visible], self.digests[:visible], self.nodes[:visible]
        )

    def hidden_before(self, visible: int) -> Sequence[Anchored]:
        """Return the hidden parts at the first visible parts."""
        return self.hidden[: bisect_left(self.hidden, visible, key=_at)]

    def hash_before(self, visible: int) -> bytes:
        """Return the hash of these hidden parts: their `chain`."""
        return self._hashes[bisect_left(self.hidden, visible, key=_at)]

    def hash_with(self, more: Iterable[Anchored]) -> bytes:
        """Return the hash of all hidden parts, followed by more."""
        found = self._hash.copy()
        for each in [*self.hidden[self._certain :], *more]:
            found.update(hash_input(each))
        return bytes(found.digest())

    def behind(self, visible: int) -> int:
        """Return the place, among all parts, after the first `visible` visible parts and the hidden parts that belong
        to them."""
        if not visible:
            return 0
        place = self.places[visible - 1] + 1
        own = {id(each.part) for each in self._at(visible - 1) if each.after}
        while place < len(self.parts) and id(self.parts[place]) in own:
            place += 1
        return place

    def _at(self, number: int) -> Sequence[Anchored]:
        begin, end = (bisect_left(self.hidden, at, key=_at) for at in (number, number + 1))
        return self.hidden[begin:end]

    def _with_hidden(
        self, parts: Sequence[Part], places: Sequence[int], made: Sequence[bytes], nodes: Sequence[int]
    ) -> IndexedParts:
        """Return longer parts. Hidden ones are anchored from this one's last run on."""
        new = anchor_hidden(parts[self._run :], bisect_left(places, self._run))
        run = _last_run(parts)
        certain = self._certain + len(new) - sum(part.hidden is not None for part in parts[run:])
        hashes, state, found = [*self._hashes[: self._certain + 1]], self._hash, self._hash.copy()
        for number, each in enumerate(new, self._certain + 1):
            found.update(hash_input(each))
            hashes.append(found.digest())
            if number == certain:
                state = found.copy()
        hidden = [*self.hidden[: self._certain], *new]
        return IndexedParts(self.root, parts, places, made, nodes, hidden, hashes, run, certain, state)


def _last_run(parts: Sequence[Part]) -> int:
    """Return where the last run of one role begins."""
    role = parts[-1].role if parts else None
    others = (number for number in range(len(parts), 0, -1) if parts[number - 1].role != role)
    return next(others, 0)
