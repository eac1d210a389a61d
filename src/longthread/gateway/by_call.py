"""Hidden parts that are bound to their call, put back beside it.

Each turn of the model's in a request is looked up by itself: the reply that says the same, or else the one with the id
of its call. So it is found whatever the client trimmed, pruned, summarized or edited before it. Only what the same
caller has in the log is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import NamedTuple

from longthread.gateway.asked import Asked
from longthread.gateway.binding import is_bound_to_call, kin_of, vendor_of
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.parts import Anchored, Part, anchored, digest_alone, name_node, visible_parts
from longthread.gateway.restore import with_hidden
from longthread.gateway.tree import read_entries, reply_seqs
from longthread.store import gateway as calls
from longthread.store.driver import Transaction
from longthread.store.gateway import GatewayCall, HiddenPart, KnownNode
from longthread.store.log import entries_at

ALONE = -2
"""The place of the node by which a reply is found by itself. Those of its calls' ids have lower ones."""
_COUNTED = re.compile(r"(?:^|[\W_])\d{0,5}$|^[A-Za-z_.\-]*\d{0,5}$")
"""Ids that servers count or name anew in each conversation, such as `call_0`: they tell no call apart."""


@dataclass(frozen=True, slots=True)
class ReplyMaker:
    """Whose replies a request can take: an upstream's, of a model."""

    upstream: str
    family: str
    model: str

    @property
    def kin(self) -> set[str]:
        return {self.family, vendor_of(self.model) or self.family}


@dataclass(slots=True)
class _Turn:
    """What the model said at one place of a request: visible parts from `first` to the one before `last`."""

    first: int
    last: int
    parts: Sequence[Part]
    whole: frozenset[int]
    """Nodes of a reply that says the same."""
    by_id: frozenset[int]
    """Nodes of replies that have one of its calls."""
    found: KnownNode | None = None
    is_same: bool = False
    """Whether the reply that was found says the same."""


class _Hidden(NamedTuple):
    """A hidden part of a reply before its visible part number `at`, or behind it. `raw` is its block."""

    at: int
    after: bool
    key: bytes
    seal: str | None
    raw: str


@dataclass(frozen=True, slots=True)
class _Reply:
    """A reply in the log."""

    visible: Sequence[Part]
    hidden: Sequence[_Hidden]
    has_pairs: bool


def alone_nodes(dialect: Dialect, call: GatewayCall, root: bytes, parts: Sequence[Part]) -> list[int]:
    """Return the nodes by which a reply is found by itself: of what it says, and of the ids of its calls that tell it
    apart; none, if it has no hidden parts that are bound to their call."""
    hidden = [part for part in parts if part.hidden is not None]
    if call.broken or not hidden or not is_bound_to_call(dialect, call.model, hidden):
        return []
    kin = kin_of(call.family, call.model, hidden)
    visible = visible_parts(parts)
    return [_whole_node(root, call.upstream, kin, visible), *_id_nodes(root, call.upstream, kin, visible)]


def _whole_node(root: bytes, upstream: str, kin: str, visible: Sequence[Part]) -> int:
    return name_node(root, f"reply\n{upstream}\n{kin}", digest_alone(visible).hex())


def _id_nodes(root: bytes, upstream: str, kin: str, visible: Iterable[Part]) -> list[int]:
    ids = [str(part.value[0]) for part in visible if part.kind == "call" and part.value[0]]
    return [name_node(root, f"call\n{upstream}\n{kin}", each) for each in ids if not _COUNTED.search(each)]


async def restored_by_call(tx: Transaction, asked: Asked, begin: int, asker: ReplyMaker, own: str) -> Asked | None:
    """Return a request with the hidden parts of each turn from visible part `begin` on that is in the log; None if that
    changes nothing. Of equal replies the `own` thread's comes first, and then the newest."""
    runs = _runs(asked, begin, asker)
    turns = [turn for run in runs for turn in run]
    nodes = list(set().union(*(turn.whole | turn.by_id for turn in turns)))
    known: dict[int, list[KnownNode]] = {}
    for each in await calls.known_replies(tx, asked.user, nodes, own) if nodes else ():
        known.setdefault(each.node, []).append(each)
    if not known:
        return None
    _choose(runs, known, own)
    puts: list[HiddenPart] = []
    drops: list[Anchored] = []
    for reply, chosen in await _replies(tx, asked.dialect, [turn for turn in turns if turn.found]):
        placed = _placed(asked.dialect, reply, chosen)
        for turn in chosen:
            theirs = asked.indexed.hidden_before(turn.last)[len(asked.indexed.hidden_before(turn.first)) :]
            ours = [each for each in placed if turn.first <= each.at < turn.last]
            if ours and _may_replace(theirs, ours):
                puts += [(each.at, each.after, each.raw) for each in ours]
                drops += theirs
    return with_hidden(asked, puts, drops) if puts else None


def _runs(asked: Asked, begin: int, asker: ReplyMaker) -> list[list[_Turn]]:
    """Return the turns of the model's. A run of several messages or items is one first, and then each of them."""
    indexed = asked.indexed
    numbered = ((at, indexed.parts[indexed.places[at]]) for at in range(begin, len(indexed.places)))
    found: list[list[_Turn]] = []
    for role, run in groupby(numbered, key=lambda each: each[1].role):
        if role == "assistant":
            members = list(run)
            items = [list(own) for _, own in groupby(members, key=lambda each: each[1].item)]
            found.append([_turn(asked, asker, own) for own in ([members, *items] if len(items) > 1 else [members])])
    return found


def _turn(asked: Asked, asker: ReplyMaker, numbered: Sequence[tuple[int, Part]]) -> _Turn:
    parts = [part for _, part in numbered]
    root, upstream = asked.root, asker.upstream
    whole = frozenset(_whole_node(root, upstream, kin, parts) for kin in asker.kin)
    by_id = frozenset(chain.from_iterable(_id_nodes(root, upstream, kin, parts) for kin in asker.kin))
    return _Turn(numbered[0][0], numbered[-1][0] + 1, parts, whole, by_id)


def _choose(runs: Sequence[Sequence[_Turn]], known: Mapping[int, Sequence[KnownNode]], own: str) -> None:
    """Choose a reply for each turn. The last turns choose first: of equal replies the later one is the newer."""
    every = [[node for name in turn.whole | turn.by_id for node in known.get(name, ())] for run in runs for turn in run]
    shared = Counter(chain.from_iterable({node.thread_id for node in nodes} for nodes in every))
    used: set[tuple[str, int]] = set()

    def best(names: frozenset[int]) -> KnownNode | None:
        def rank(node: KnownNode) -> tuple[object, ...]:
            is_new = (node.thread_id, node.call) not in used
            return node.thread_id == own, shared[node.thread_id], is_new, node.updated_at, node.seq

        return max((node for name in names for node in known.get(name, ())), key=rank, default=None)

    for whole, *single in reversed(runs):
        for turn in [whole, *reversed(single)] if single else [whole]:
            turn.found = best(turn.whole)
            turn.is_same = turn.found is not None
            if turn.found is None and (turn is not whole or not single):
                turn.found = best(turn.by_id)
            if turn.found:
                used.add((turn.found.thread_id, turn.found.call))
            if turn is whole and turn.found:
                break


async def _replies(tx: Transaction, dialect: Dialect, turns: Sequence[_Turn]) -> list[tuple[_Reply, list[_Turn]]]:
    """Return the replies that were found, each with its turns: one that says the same has its own, and those that have
    calls of one reply share it. What a provider refused is left out."""
    by_call: dict[tuple[str, int], list[_Turn]] = {}
    for turn in turns:
        if turn.found is not None:
            by_call.setdefault((turn.found.thread_id, turn.found.call), []).append(turn)
    found: list[tuple[_Reply, list[_Turn]]] = []
    for thread_id in {thread_id for thread_id, _ in by_call}:
        numbers = [n for name, n in by_call if name == thread_id]
        for n, reply in (await _read(tx, dialect, thread_id, numbers)).items():
            mine = by_call[thread_id, n]
            same = [turn for turn in mine if turn.is_same]
            if not same:
                found.append((reply, mine))
            # An id may not stand twice.
            found += [(reply, [turn]) for turn in (same[-1:] if reply.has_pairs else same)]
    return found


async def _read(tx: Transaction, dialect: Dialect, thread_id: str, numbers: Sequence[int]) -> dict[int, _Reply]:
    those = [call for call in await calls.calls_among(tx, thread_id, numbers) if not call.refused]
    entries = await entries_at(tx, thread_id, [seq for call in those for seq in reply_seqs(call)])
    found: dict[int, _Reply] = {}
    for call in those:
        own = [entries[seq] for seq in reply_seqs(call) if seq in entries]
        if len(own) == len(reply_seqs(call)):
            parts, raws = read_entries(own, dialect)
            hidden = [
                _Hidden(each.at, each.after, each.key, each.part.value, raws[each.part.place])
                for each in anchored(parts)
            ]
            has_pairs = any(dialect.belongs_to(each.raw) == "pair" for each in hidden)
            found[call.n] = _Reply(visible_parts(parts), hidden, has_pairs)
    return found


def _placed(dialect: Dialect, reply: _Reply, turns: Sequence[_Turn]) -> list[_Hidden]:
    """Return a reply's hidden parts at their places in the request; none, if one of a pair has lost the other."""
    places = _places(reply.visible, turns)
    if not reply.has_pairs or any(turn.is_same for turn in turns):
        places = _with_texts(places, reply.visible, turns)
    found: list[_Hidden] = []
    for each in reply.hidden:
        belongs = dialect.belongs_to(each.raw)
        if each.at in places:
            found.append(each._replace(at=places[each.at]))
        elif belongs == "message" and places:
            later = min((number for number in places if number > each.at), default=None)
            found.append(each._replace(at=places[max(places) if later is None else later], after=later is None))
        elif belongs == "pair":
            return []
    return found


def _places(visible: Sequence[Part], turns: Sequence[_Turn]) -> dict[int, int]:
    """Return where the visible parts of a reply are in turns, by their numbers."""
    left = [each for turn in turns for each in enumerate(turn.parts, turn.first)]
    found: dict[int, int] = {}
    for number, part in enumerate(visible):
        place = next((place for place, (_, each) in enumerate(left) if _is_same(part, each)), None)
        if place is not None:
            found[number] = left.pop(place)[0]
    return found


def _with_texts(places: dict[int, int], visible: Sequence[Part], turns: Sequence[_Turn]) -> dict[int, int]:
    """Return the places also of texts that a client has cut or changed: those texts that are left, in order."""
    taken = set(places.values())
    numbered = (each for turn in turns for each in enumerate(turn.parts, turn.first))
    texts = (at for at, part in numbered if part.kind == "text" and at not in taken)
    missing = (number for number, part in enumerate(visible) if part.kind == "text" and number not in places)
    return places | dict(zip(missing, texts, strict=False))


def _is_same(one: Part, other: Part) -> bool:
    if one.kind == other.kind == "call" and one.value[0] and not _COUNTED.search(str(one.value[0])):
        return bool(one.value[0] == other.value[0])
    if one.kind == other.kind == "text":
        return bool(one.value.strip() == other.value.strip())
    return one.visible == other.visible


def _may_replace(theirs: Sequence[Anchored], ours: Sequence[_Hidden]) -> bool:
    """Whether a turn's hidden parts are others than the reply's, and none of them has another provider's signature."""
    if {(each.at, each.after, each.key) for each in theirs} == {(each.at, each.after, each.key) for each in ours}:
        return False
    seals = {each.seal for each in ours}
    return all(each.part.value in seals for each in theirs if each.part.value)
