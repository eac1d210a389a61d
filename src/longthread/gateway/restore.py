"""Put back exactly what a client dropped: the hidden parts of a conversation.

What hidden parts are bound to depends on the vendor of the model. Bound to the *prefix*: they are valid only after
exactly the prefix that they were made after. Bound to their *call*: they belong with the reply that they came with,
whatever the client changed before it.

The newest reply that the request still holds, by the upstream and the family of models that are asked now, decides:
before its end go the hidden parts that its own call carried, and then its own. All of them or none.

For parts that are bound to their call, each turn of the model's in a request is looked up by itself: the reply that
says the same, or else the one with the id of its call. So it is found whatever the client trimmed, pruned,
summarized or edited before it. Only what the same caller has in the log is looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, groupby
from typing import Literal, NamedTuple

from longthread.gateway.dialects.dialect import Dialect, Edit, HiddenMissing, HiddenRefused
from longthread.gateway.parts import Anchored, Part, anchor_hidden, digest_alone, name_node, visible_parts
from longthread.gateway.raw_json import replace_spans
from longthread.gateway.request import Asked, ReadItems, Restored
from longthread.gateway.tree import read_entries, reply_seqs
from longthread.store import gateway as calls
from longthread.store.driver import Transaction
from longthread.store.gateway import GatewayCall, HiddenPart, KnownNode
from longthread.store.log import entries_at


def restore_hidden(asked: Asked, ours: Sequence[HiddenPart], ends: int) -> Asked:
    """Return a request whose hidden parts before visible part `ends` are exactly `ours`.

    Parts that an earlier request of the conversation restored are reused.
    """
    theirs = asked.indexed_parts.hidden_before(ends)
    known = _find_restored(asked, ours, theirs)
    first, begin = (known.count, known.items.cut.items[: known.end]) if known else (0, b"")
    changes = (
        _edits(asked, ours[len(known.ours) :], theirs[len(known.theirs) :]) if known else _edits(asked, ours, theirs)
    )
    last = max(first, _count_finished(asked, ends))
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


def hidden_from(asked: Asked, refusal: HiddenRefused) -> list[Anchored]:
    """Return the hidden part that was refused, and all later ones: each is bound to those before it."""
    if refusal.marks:
        failing = (n for n, each in enumerate(asked.hidden_parts) if all(mark in each.key for mark in refusal.marks))
        return list(asked.hidden_parts[next(failing, 0) :])
    if refusal.item is None:
        return list(asked.hidden_parts)
    at = (refusal.item - asked.frame_count, refusal.place or 0)
    return [each for each in asked.hidden_parts if (each.part.item, each.part.place) >= at] or list(asked.hidden_parts)


def drop_hidden(asked: Asked, hidden: Iterable[Anchored]) -> Asked:
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
        found = found.with_items(replace_spans(cut.items, changes)) if changes else found
    return found if found is not asked else None


def _find_restored(asked: Asked, ours: Sequence[HiddenPart], theirs: Sequence[Anchored]) -> Restored | None:
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
    return asked.parts[asked.indexed_parts.places[visible]].item


def _count_finished(asked: Asked, ends: int) -> int:
    """Return how many items, the instructions included, are before visible part `ends`; 0 if one continues after it."""
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
        anchor = asked.parts[asked.indexed_parts.places[at]]
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
        new = asked.dialect.edit_message(item.decode(), edit).encode() if edit else item
        if new:
            pieces += [items[spans[number - 1][1] : start], new] if has_before else [new]
            has_before = True
    return b"".join(pieces)


Binding = Literal["prefix", "call"]

_MODELS: Mapping[str, str] = {
    "anthropic": "claude|anthropic",
    "deepseek": "deepseek",
    "kimi": "kimi|moonshot",
    "glm": "glm|chatglm",
    "minimax": "minimax|abab",
    "gemini": "gemini|gemma",
    "qwen": "qwen|qwq|qvq",
    "openai": r"gpt|chatgpt|codex|o\d",
    "mistral": "mistral|magistral|ministral|codestral|devstral",
    "xai": "grok",
    "xiaomi": "mimo",
    "stepfun": r"step-\d",
    "tencent": "hunyuan",
    "bytedance": "doubao",
    "nvidia": "nemotron",
}
"""Vendors with names of their models, as they begin a word. The first one that fits counts: `deepseek-r1-distill-qwen`
thinks as DeepSeek's do."""
_BINDING = ("system", "tools", "instructions", "input", "messages")
"""Fields of a frame that hidden parts are bound to. Of `input` and `messages` it has the instructions."""
_BOUND_TO_PREFIX = frozenset({"anthropic"})
"""Vendors that bind hidden parts to all that went before. The others bind them to their call."""


@lru_cache(256)
def vendor_of(model: str) -> str | None:
    """Return the vendor of a model; None: it is unknown."""
    for vendor, names in _MODELS.items():
        if re.search(rf"(?:^|[/.:_-])(?:{names})", model, re.IGNORECASE):
            return vendor
    return None


def binding_of(model: str) -> Binding | None:
    """Return what a model's vendor binds hidden parts to; None: the model is unknown."""
    vendor = vendor_of(model)
    return None if vendor is None else "prefix" if vendor in _BOUND_TO_PREFIX else "call"


def hash_binding(frame: Mapping[str, str]) -> str:
    """Return what hidden parts are bound to in a frame, as a hash."""
    bound = "\n".join(f"{name} {frame.get(name)}" for name in _BINDING)
    return blake2b(bound.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def is_bound_to_call(dialect: Dialect, model: str, hidden: Iterable[Part]) -> bool:
    """Return whether a reply's hidden parts are bound to their call. For an unknown model the parts decide: a signature
    in a dialect of Anthropic's is bound to the prefix, and unsigned text is not."""
    known = binding_of(model)
    return known == "call" if known else not any(map(dialect.binds_prefix, hidden))


def kin_of(family: str, model: str, hidden: Iterable[Part]) -> str:
    """Return which models take a reply's hidden parts: with a signature those of its family, and otherwise all of the
    vendor's."""
    return family if any(part.value for part in hidden) else vendor_of(model) or family


ALONE = -2
"""The place of the node by which a reply is found by itself. Those of its calls' ids have lower ones."""
_COUNTED = re.compile(r"(?:^|[\W_])\d{0,5}$|^[A-Za-z_.\-]*\d{0,5}$")
"""Ids that servers count or name from the start in each conversation, such as `call_0`: they distinguish no calls."""


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
    """A hidden part of a reply before its visible part number `at`, or, with `after`, following it. `raw` is its
    block."""

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
        placed = _place_hidden(asked.dialect, reply, chosen)
        for turn in chosen:
            theirs = asked.indexed_parts.hidden_before(turn.last)[len(asked.indexed_parts.hidden_before(turn.first)) :]
            ours = [each for each in placed if turn.first <= each.at < turn.last]
            if ours and _may_replace(theirs, ours):
                puts += [(each.at, each.after, each.raw) for each in ours]
                drops += theirs
    return with_hidden(asked, puts, drops) if puts else None


def _runs(asked: Asked, begin: int, asker: ReplyMaker) -> list[list[_Turn]]:
    """Return the turns of the model's. A run of several messages or items is one first, and then each of them."""
    indexed = asked.indexed_parts
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
    """Return the replies that were found, each with its turns. A turn that says the same as a reply has its own; turns
    with calls of one reply share that reply. Replies that a provider refused are left out."""
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
                for each in anchor_hidden(parts)
            ]
            has_pairs = any(dialect.belongs_to(each.raw) == "pair" for each in hidden)
            found[call.n] = _Reply(visible_parts(parts), hidden, has_pairs)
    return found


def _place_hidden(dialect: Dialect, reply: _Reply, turns: Sequence[_Turn]) -> list[_Hidden]:
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
