"""Where a request belongs: which thread, after which entry, and which reply decides what is restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile

from longthread.errors import ThreadNotFound
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.parts import Anchored, Part, anchor_hidden
from longthread.gateway.raw_json import element_texts
from longthread.gateway.request import Asked
from longthread.model.content import unpack
from longthread.model.entry import Entry
from longthread.model.ids import short_id
from longthread.store import gateway as calls
from longthread.store.driver import Transaction
from longthread.store.gateway import GatewayCall, HiddenPart, KnownNode
from longthread.store.log import entries_at, find_thread

UNANSWERED = -1
"""The place of a node of a request that has no whole reply."""
_SIBLINGS = 16
"""Equal replies under one parent that are kept distinct, the newest ones."""
_NEAR = 8
"""Nodes at a request's end that are looked for first: most requests add a few parts to what is known."""


@dataclass(frozen=True, slots=True)
class NamedThread:
    """The thread that a request names. `strict`: the client chose it for this conversation; otherwise it is what the
    client calls its session, which may hold several. `parent` is the thread above. `is_conversation`: the request goes
    on from it by its id, and does not repeat it."""

    thread_id: str
    strict: bool
    parent: str | None = None
    is_conversation: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request belongs.

    Attributes:
        parent: the thread above a new one.
        branch: `new`, `main` if it goes on from the thread's tip, `fork` from another entry, or `side` if it is no part
            of the conversation.
        decides: the call whose reply decides what is restored.
        joined: the number of the thread's call whose reply the request goes on from, or 0.
        last: the deepest entry of the thread that the request goes on from.
        calls: the number of the thread's last call when that was looked for, or 0.
        is_chosen: the request names the conversation, or asks the next question with the tools that it has by now. So
            it is part of it, whatever its tools.
    """

    thread_id: str
    parent: str | None
    branch: str
    decides: GatewayCall | None
    joined: int = 0
    last: KnownNode | None = None
    calls: int = 0
    is_chosen: bool = False


async def find_place(
    tx: Transaction,
    asked: Asked,
    named: NamedThread | None,
    upstream: str,
    family: str,
    *,
    aside: bool = False,
    client: str = "",
) -> Place:
    """Find where a request of a client's belongs: the thread that it chose, or that of its longest prefix that holds a
    reply, or the one that it names, or a new one."""
    own = named.thread_id if named else None
    depth = dict(zip(asked.nodes, count()))
    joined = await _choose_prefix(tx, asked, await _replies(tx, asked, own, client), depth, own, client)
    decides = await _deciding(tx, joined, upstream, family) if joined else None
    parent = None
    if named is not None and (named.strict or joined is None):
        thread_id, parent = named.thread_id, named.parent
    else:
        thread_id = joined.thread_id if joined else short_id()
    last = joined if joined and joined.thread_id == thread_id else None
    n = last.call if last else 0
    if named and not last:
        last = await find_last(tx, asked, thread_id, 0)
    there = await calls.position(tx, thread_id, user_id=asked.user) if named or last else None
    if named and there and is_anothers(there.owner, asked.owner):
        named = replace(named, thread_id=_own_name(thread_id, asked.owner or ""))
        return await find_place(tx, asked, named, upstream, family, aside=aside, client=client)
    is_chosen = named is not None and named.is_conversation
    has_others = last is not None and there is not None and is_aside(asked.tools, there.tools)
    if has_others and not is_chosen and n and last is not None:
        is_chosen = await _has_changed_tools(tx, asked, last)
    if aside or (has_others and not is_chosen):
        branch = "side"
    else:
        branch = "new" if last is None else "main" if last.seq == last.tip else "fork"
    return Place(thread_id, parent, branch, decides, n, last, there.n if there else 0, is_chosen)


def is_anothers(owner: str | None, asking: str | None) -> bool:
    """Whether what an owner has is another one's than who asks."""
    return asking is not None and owner not in (None, asking)


def _own_name(name: str, owner: str) -> str:
    """Return what an owner calls a thread whose name another one has already."""
    mark = f"~{owner[:8]}"
    return short_id() if name.endswith(mark) else name + mark


async def mark_names(tx: Transaction, named: NamedThread, owner: str, user_id: str) -> NamedThread:
    """Return a thread with the names that a user has for it: where several users have threads, no answer may tell that
    another one has a name already."""
    parent = named.parent and await _mark_name(tx, named.parent, owner, user_id)
    return replace(named, thread_id=await _mark_name(tx, named.thread_id, owner, user_id), parent=parent)


async def _mark_name(tx: Transaction, name: str, owner: str, user_id: str) -> str:
    """Return a user's name of a thread, with the user's mark if the user has none of the name."""
    mark = f"~{owner[:8]}"
    try:
        await find_thread(tx, name, user_id=user_id)
    except ThreadNotFound:
        return name if name.endswith(mark) else name + mark
    return name


async def own_name(tx: Transaction, name: str, owner: str | None, user_id: str) -> str:
    """Return the name of an owner's thread that a client of a user's names."""
    is_taken = is_anothers(await calls.owner_of(tx, name, user_id=user_id), owner)
    return _own_name(name, owner or "") if is_taken else await _mark_name(tx, name, owner or "", user_id)


async def _choose_prefix(
    tx: Transaction, asked: Asked, known: list[KnownNode], depth: Mapping[int, int], own: str | None, client: str
) -> KnownNode | None:
    """Return the longest known prefix that holds a reply. Of equal replies under one parent it is one of the thread
    that is named or the same client's; of these the one whose hidden parts the request holds, or else the newest."""
    known.sort(key=lambda node: (depth[node.node], node.thread_id == own, node.updated_at, node.seq), reverse=True)
    if not known:
        return None
    ends = min(depth[node.node] for node in known if _reply_of(node) == _reply_of(known[0]))
    siblings = {_reply_of(node) for node in known if depth[node.node] == ends}
    if len(siblings) == 1:
        return known[0]
    newest: dict[tuple[str, int], KnownNode] = {}
    for node in known:
        newest.setdefault(_reply_of(node), node)
    among = sorted((node for each, node in newest.items() if each in siblings), key=lambda node: node.thread_id != own)
    among = [node for node in among if node.thread_id == own or node.client == client] or among
    for node in among[:_SIBLINGS]:
        call = await calls.find_call(tx, node.thread_id, node.call)
        if call and asked.indexed_parts.hash_before(call.ends) == call.hidden_hash:
            return node
    return known[0] if known[0] in among else among[0]


def _reply_of(node: KnownNode) -> tuple[str, int]:
    return node.thread_id, node.call


def is_reminder(text: str) -> bool:
    """Whether a text among the user's is the client's own to the model."""
    return text.lstrip().startswith("<")


def is_aside(tools: int, first: int) -> bool:
    """Whether a request is no part of the conversation, for its tools are others than those of the `first` that had
    any."""
    return first not in (0, tools)


async def _has_changed_tools(tx: Transaction, asked: Asked, last: KnownNode) -> bool:
    """Return whether the conversation's tools have changed for good. So they have if a request continues a reply that
    was made with the same tools, and that reply is the conversation's last or gets a question of the user's. A program
    that runs next to a conversation asks once, or sends results of tools."""
    call = await calls.find_call(tx, last.thread_id, last.call)
    if call is None or call.tools != asked.tools:
        return False
    if last.seq == last.tip:
        return True
    new = asked.parts[asked.indexed_parts.behind(call.ends) :]
    return any(each.kind == "text" and each.role == "user" and not is_reminder(each.value) for each in new)


async def _replies(tx: Transaction, asked: Asked, own: str | None, client: str) -> list[KnownNode]:
    """Return where conversations of the user have replies that the request ends with, or else any that it holds."""
    end, size = len(asked.nodes), _NEAR
    while end > 0:
        known = await calls.known_replies(tx, asked.user, asked.nodes[max(0, end - size) : end], own, client)
        found = [each for each in known if each.place == 0]
        if found or (found := await _find_unanswered(tx, asked, [each for each in known if each.place == UNANSWERED])):
            return found
        end, size = end - size, 8 * size
    return []


async def _find_unanswered(tx: Transaction, asked: Asked, nodes: Sequence[KnownNode]) -> list[KnownNode]:
    """Return where the request is asked again, or goes on, whose reply broke off or could not be read. That is the last
    one of its conversation: otherwise each greeting would go on from the first one that broke off."""
    for node in sorted(nodes, key=lambda each: (asked.nodes.index(each.node), each.updated_at), reverse=True):
        there = await calls.position(tx, node.thread_id)
        last = await calls.find_call(tx, node.thread_id, there.n)
        if last is None or last.is_answered or last.asked_seq != node.seq or last.tools != asked.tools:
            continue
        run = _run_behind(asked, asked.nodes.index(node.node) + 1)
        if not run or await _has_said(tx, last, run):
            return [replace(node, call=last.previous, place=0)]
    return []


def _run_behind(asked: Asked, visible: int) -> list[Part]:
    """Return what the model said after the first visible parts."""
    behind = (asked.parts[place] for place in asked.indexed_parts.places[visible:])
    return list(takewhile(lambda part: part.role == "assistant", behind))


async def _has_said(tx: Transaction, call: GatewayCall, run: Sequence[Part]) -> bool:
    """Whether a broken-off reply begins with what a client shows of it, or the other way round: one may have more."""
    entries = await entries_at(tx, call.thread_id, reply_seqs(call)) if call.reply_seq is not None else {}
    ours = "".join(entry.text for _, entry in sorted(entries.items())).strip()
    theirs = "".join(part.value for part in run if part.kind == "text").strip()
    return bool(ours and theirs) and (ours.startswith(theirs) or theirs.startswith(ours))


async def find_last(tx: Transaction, asked: Asked, thread_id: str, joined: int) -> KnownNode | None:
    """Return the deepest entry of a thread that a request continues. Entries after the reply of call `joined` win."""
    depth = dict(zip(asked.nodes, count()))
    found = await calls.thread_nodes(tx, thread_id, asked.nodes)
    return max(found, key=lambda node: (0 < joined == node.call, depth[node.node], node.seq), default=None)


async def _deciding(tx: Transaction, joined: KnownNode, upstream: str, family: str) -> GatewayCall | None:
    """Return the newest call on the branch that was this upstream's and this family's, with a whole reply."""
    n = joined.call
    while n:
        call = await calls.find_call(tx, joined.thread_id, n)
        if call is None:
            return None
        if call.is_answered and (call.upstream, call.family) == (upstream, family):
            return call
        n = call.previous
    return None


async def hidden_until(tx: Transaction, asked: Asked, call: GatewayCall) -> Sequence[HiddenPart] | None:
    """Return the hidden parts that a call carried, and those of its reply; None if they cannot be restored."""
    if call.refused:
        return None
    found = asked.recent.hidden_until(call)
    if found is None:
        base = await calls.find_call(tx, call.thread_id, call.base) if call.base else None
        before = asked.recent.hidden_until(base) if base is not None and not base.refused else None
        line = [call] if before is not None or not call.base else await _line(tx, call)
        own = await _hidden_of(tx, asked.dialect, line)
        if own is None:
            return None
        found = [*(before or ()), *own]
        asked.recent.put_hidden(call, found, base)
    return found


async def hidden_in_log(tx: Transaction, dialect: Dialect, call: GatewayCall) -> list[HiddenPart] | None:
    """Return the same as `hidden_until`, without what is in memory."""
    return await _hidden_of(tx, dialect, await _line(tx, call))


async def _line(tx: Transaction, call: GatewayCall) -> list[GatewayCall] | None:
    """Return a call after those whose hidden parts it carried; None if one of them is not there any more."""
    there = await calls.calls_until(tx, call.thread_id, call.n)
    line: list[GatewayCall] = []
    n = call.n
    while n:
        if n not in there:
            return None
        line.append(there[n])
        n = there[n].base
    return line[::-1]


async def _hidden_of(tx: Transaction, dialect: Dialect, line: Sequence[GatewayCall] | None) -> list[HiddenPart] | None:
    """Return what each call of a line carried beyond the one before, and what its reply has."""
    if line is None or any(each.refused or not each.is_answered for each in line):
        return None
    entries = await entries_at(tx, line[0].thread_id, [seq for each in line for seq in reply_seqs(each)])
    found: list[HiddenPart] = []
    for each in line:
        own = [entries[seq] for seq in reply_seqs(each) if seq in entries]
        if len(own) != len(reply_seqs(each)):
            return None
        parts, raws = read_entries(own, dialect)
        found += [
            *each.hidden,
            *(hidden_part(part, raws[part.part.place]) for part in anchor_hidden(parts, each.asked)),
        ]
    return found


def reply_seqs(call: GatewayCall) -> range:
    """Return the seqs of a reply's entries."""
    return range(call.reply_seq or 0, (call.reply_end or 0) + 1)


def read_entries(entries: Sequence[Entry], dialect: Dialect) -> tuple[list[Part], list[str]]:
    """Return the parts of a reply's entries, and the JSON texts of its blocks, in which a part's `place` counts."""
    parts: list[Part] = []
    raws: list[str] = []
    for entry in entries:
        blocks = element_texts(unpack(entry.payload or b"", entry.text)[1])
        own = dialect.read_blocks(entry.role, [value for value, _ in blocks])
        parts += [part._replace(place=len(raws) + part.place) for part in own]
        raws += [text for _, text in blocks]
    return parts, raws


def hidden_part(each: Anchored, block: str) -> HiddenPart:
    return each.at, each.after, block
