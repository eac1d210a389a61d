"""Which client asks, which conversation it says that it is in, and whose that conversation is.

It belongs to the credential which its client showed. A conversation without an owner is from before version 48,
copied, imported, or stored by another program. The first credential that goes on with it gets it.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

from longthread.errors import StoreError, ThreadNotFound
from longthread.gateway.dialects.responses import is_reference
from longthread.gateway.http import Incoming
from longthread.gateway.parts import digests, name_node, node_of, root_of, visible_parts
from longthread.gateway.request import Asked
from longthread.gateway.state import Expanded, StateUnknown, conversation_id, input_items
from longthread.gateway.stored_calls import rebuild
from longthread.gateway.tree import NamedThread
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Driver, Transaction

_LABELS: Sequence[tuple[str, str]] = (
    ("claude-cli", "claude_code"),
    ("claude-code", "claude_code"),
    ("codex", "codex"),
    ("opencode", "opencode"),
    ("qwen", "qwen"),
    ("aider", "aider"),
    ("cline", "cline"),
    ("cursor", "cursor"),
    ("augment", "augment"),
    ("gemini", "gemini"),
    ("litellm", "litellm"),
    ("langchain", "langchain"),
    ("pydantic-ai", "pydantic_ai"),
    ("ai-sdk", "ai_sdk"),
    ("ai/", "ai_sdk"),
    ("anthropic/", "sdk"),
    ("openai/", "sdk"),
)
"""Beginnings of words in a `User-Agent`, and the label of the client."""
_TYPES = frozenset({"cursor", "augment", "claude_code"})
"""Document 003's kinds of clients."""
_LONGEST_ID = 200
"""Characters that the id of a conversation may have."""
_SESSIONS = ("thread-id", "x-session-id", "x-claude-code-session-id")
"""Headers by which clients name their conversation."""
_AGENT = "x-claude-code-agent-id"
_PARENT = "x-claude-code-parent-agent-id"
_MAIN = frozenset({"", "main", "turn", "subagent"})
"""Kinds of requests that are part of the conversation."""


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks.

    Attributes:
        type: document 003's `client_type`.
        label: a finer name, which is a label only.
        is_aside: the client says that the request is no part of the conversation.
    """

    type: str
    label: str
    is_aside: bool = False


def client_of(asked: Incoming) -> Client:
    label = _label(asked.header("user-agent") or "")
    return Client(label if label in _TYPES else "unknown", label, _is_aside(asked))


@lru_cache(64)
def _label(agent: str) -> str:
    begins = (label for mark, label in _LABELS if re.search(rf"\b(?:async)?{mark}", agent, re.IGNORECASE))
    return next(begins, "unknown")


def named_thread(asked: Incoming) -> NamedThread | None:
    """Return the thread that a request's headers name; that of a sub-agent is below its caller's."""
    chosen = _text(asked.header("x-conversation-id"))
    session = chosen or next((value for name in _SESSIONS if (value := asked.header(name))), None)
    if session is None:
        return None
    agent, above = asked.header(_AGENT), asked.header(_PARENT)
    parent: str | None = None
    if agent:
        parent = f"{session}:{above}" if above else session
        return NamedThread(f"{session}:{agent}", strict=bool(chosen), parent=parent)
    root = asked.header("session-id")  # Codex: its sub-agents have their root's
    if not chosen and root != session and asked.header("thread-id"):
        parent = root
    return NamedThread(session, strict=bool(chosen), parent=parent)


def find_named_thread(asked: Incoming, found: Expanded) -> NamedThread | None:
    """Return the thread that the request names: by a header, or else by what it goes on from. Raises StateUnknown:
    that cannot be a name. What a client calls its session is then no name."""
    named = named_thread(asked)
    if found.thread is not None and not (named and named.strict):
        named = NamedThread(found.thread, strict=True, is_conversation=True)
    if named is not None and not _is_name(named.thread_id):
        if named.strict:
            raise StateUnknown(400, "", f"A conversation's id has at most {_LONGEST_ID} characters, all printable.")
        named = None
    if found.call is not None and not (named and named.strict):
        return NamedThread(found.call.thread_id, strict=False, is_conversation=True)
    return named


def _is_name(thread_id: str) -> bool:
    return bool(thread_id.strip()) and len(thread_id) <= _LONGEST_ID and thread_id.isprintable()


def _text(header: str | None) -> str | None:
    """Return a header's text: programs send UTF-8, which HTTP reads as Latin-1."""
    try:
        return header.encode("latin-1").decode("utf-8") if header else None
    except UnicodeError:
        return header


def _is_aside(asked: Incoming) -> bool:
    kind = asked.header("x-claude-code-request-class") or ""
    try:
        kind = kind or json.loads(asked.header("x-codex-turn-metadata") or "{}").get("request_kind", "")
    except (ValueError, AttributeError):
        return False
    return str(kind).lower() not in _MAIN


FRESH_SECONDS = 2.0
"""For how long it is not looked again whether there are conversations without an owner."""


class Owners:
    """The owners of users' conversations. Safe to share between tasks."""

    def __init__(self, store: Driver) -> None:
        self._store = store
        self._salt: bytes | None = None
        self._spare = secrets.token_bytes(32)
        """In the place of the salt while the store fails: nothing is found then, or kept."""
        self._has_unowned = False
        self._looked_at: float | None = None

    async def find(self, credential: str) -> str:
        """Return the owner of a credential, a hash from which the credential cannot be read. An empty credential names
        no particular client."""
        if self._salt is None:
            self._salt = await self._read_salt()
        return hmac.new(self._salt or self._spare, credential.encode("utf-8", "surrogatepass"), sha256).hexdigest()[:32]

    async def adopt(self, asked: Asked, names: Sequence[str]) -> bool:
        """Give the sender of a request the conversations without an owner that it names or goes on with; return whether
        there are any. Raises StoreError."""
        if asked.owner is None or not await self._may_adopt():
            return False
        async with self._store.reading() as tx:
            found = await self._find_unowned(tx, asked, names)
        return any([await self._give(thread_id, asked.owner, asked.user) for thread_id in found])

    async def adopt_response(self, dialect: str, response_id: str, owner: str, user: str) -> bool:
        """Do the same for who asks for a response by its id. Raises StoreError."""
        if not await self._may_adopt():
            return False
        async with self._store.reading() as tx:
            node = name_node(root_of(user, dialect), "response", response_id)
            found = {each.thread_id for each in await calls.known_replies(tx, user, [node])}
        return any([await self._give(thread_id, owner, user) for thread_id in found])

    async def _read_salt(self) -> bytes | None:
        """Return the store's salt, which is made when it is first needed; None: the store fails, or takes none."""
        try:
            async with self._store.reading() as tx:
                found = await calls.find_salt(tx)
            if found is None:
                async with self._store.writing() as tx:
                    found = await calls.put_salt(tx, secrets.token_hex(32))
        except StoreError:
            return None
        return bytes.fromhex(found)

    async def _may_adopt(self) -> bool:
        now = time.monotonic()
        if self._looked_at is None or now - self._looked_at >= FRESH_SECONDS:
            self._looked_at = now
            async with self._store.reading() as tx:
                self._has_unowned = await calls.has_unowned(tx)
        return self._has_unowned

    async def _find_unowned(self, tx: Transaction, asked: Asked, names: Sequence[str]) -> set[str]:
        """Return the conversations without an owner that a request names, and that of its longest known beginning."""
        found = {name for name in names if await calls.is_unowned(tx, name, asked.user)}
        root = root_of(asked.user, asked.dialect.name)
        ids = [name_node(root, kind, id_) for kind, id_ in _ids(asked)]
        found |= {each.thread_id for each in await calls.known_replies(tx, asked.user, ids)}
        nodes = [node_of(digest) for digest in digests(root, visible_parts(asked.parts))]
        known = await calls.known_replies(tx, asked.user, nodes, names[0] if names else None)
        if known:
            depth = {node: number for number, node in enumerate(nodes)}
            found.add(max(known, key=lambda each: (depth[each.node], each.updated_at, each.seq)).thread_id)
        return found

    async def _give(self, thread_id: str, owner: str, user: str) -> bool:
        """Give a conversation an owner, under whom it is found from now on; return False if it has one."""
        try:
            async with self._store.writing() as tx:
                await log.position(tx, thread_id)
                if await calls.owner_of(tx, thread_id) is not None:
                    return False
                await calls.put_owner(tx, thread_id, owner)
        except ThreadNotFound:
            return False
        await rebuild(self._store, thread_id, user)
        return True


def threads_named(asked: Asked, incoming: Incoming) -> list[str]:
    """Return the names of threads in a request's headers and body."""
    named = named_thread(incoming)
    given = [named.thread_id if named else None, conversation_id(asked.value("conversation"))]
    return [name for name in given if name]


def _ids(asked: Asked) -> Iterator[tuple[str, str]]:
    """Yield the provider's ids that a request goes on from."""
    thread = asked.value("thread")
    for id_ in (
        asked.value("previous_response_id"),
        thread.get("previous_message_id") if isinstance(thread, dict) else 0,
    ):
        if isinstance(id_, str):
            yield "response", id_
    if asked.dialect.name == "responses" and any(part.kind == "reference" for part in asked.parts):
        yield from (("item", item["id"]) for item, _ in input_items(asked) if is_reference(item))
