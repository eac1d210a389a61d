"""What a call through the gateway used, and who pays for it. On a server without login no call has a payer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from longthread.access.principal import KeyLimits
from longthread.access.spending import SpentCall, expect_budget, note_spending
from longthread.errors import LongthreadError, NotGranted
from longthread.gateway.dialects.dialect import Reply
from longthread.gateway.http import Incoming
from longthread.gateway.request import Asked
from longthread.model.run import RunAsker
from longthread.settings import Settings
from longthread.store.driver import Driver, Transaction
from longthread.view.tokens import estimate

_APART = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_log = logging.getLogger(__name__)
_FREE_UPLOADS = ("/v1/files", "/v1/uploads")
_WITH_USAGE = frozenset(
    f"/v1/{end}" for end in ("chat/completions", "completions", "embeddings", "messages", "responses")
)
"""Paths whose replies say what they used."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens as a provider counted them. `cached` are those of `taken` that it had in its cache; None: it says
    nothing."""

    taken: int | None
    given: int | None
    cached: int | None = None


def read_usage(usage: Mapping[str, Any]) -> TokenUsage:
    """Return what a reply's `usage` says, in any of the dialects."""
    taken, given = usage.get("input_tokens", usage.get("prompt_tokens")), usage.get("output_tokens")
    given = usage.get("completion_tokens") if given is None else given
    cached = usage.get("cache_read_input_tokens")
    if cached is not None or usage.get("cache_creation_input_tokens") is not None:  # Anthropic's, which count apart
        taken = sum(_count(usage.get(name)) or 0 for name in _APART)
    else:
        details = usage.get("input_tokens_details") or usage.get("prompt_tokens_details") or {}
        cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return TokenUsage(_count(taken), _count(given), _count(cached))


def _count(found: Any) -> int | None:
    return found if type(found) is int and found >= 0 else None


@dataclass(frozen=True, slots=True)
class CallPayer:
    """Who pays for one call. `names` are those of its model: with its upstream's name, and without."""

    asker: RunAsker
    settings: Settings
    names: tuple[str, ...]
    key: KeyLimits | None = None

    async def expect_budget(self, store: Driver, incoming: Incoming, *, is_read: bool) -> bool:
        """Check that the call may be made. Return False for one whose cost no reply says, if there is a budget.
        `is_read`: the reply will be read. Raises BudgetSpent, PriceMissing, StoreError, or NotGranted: the key is for
        other models."""
        if self.key is not None and not self.key.allows_model(*self.names):
            raise NotGranted(use="use", kind="model", name=self.names[-1])
        async with store.reading() as tx:
            has_budget = await expect_budget(tx, self.asker, self.settings, *self.names)
        return is_read or not has_budget or _is_countable(incoming)

    async def note_reply(self, tx: Transaction, asked: Asked, reply: Reply | None) -> None:
        """Add a call to what was spent. Tokens that the provider did not count are estimated."""
        used = read_usage(reply.usage if reply is not None else {})
        taken, given = used.taken, used.given
        if taken is None:
            taken = estimate("".join([*asked.frame.values(), *asked.items]))
        if given is None:
            given = estimate("".join(raw for raws in reply.raws for raw in raws)) if reply is not None else 0
        await self._note(tx, taken, given, used.cached or 0)

    async def note_body(self, store: Driver, asked: Incoming, body: bytes) -> None:
        """Add a call whose reply nothing else reads: of its JSON only the usage is looked at. Without that, the tokens
        of what was asked are estimated. If the store fails, that is logged: the answer is there."""
        try:
            used = read_usage(json.loads(body)["usage"])
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            used = TokenUsage(None, None)
        taken = estimate(asked.body.decode("utf-8", "replace")) if used.taken is None else used.taken
        try:
            async with store.writing() as tx:
                await self._note(tx, taken, used.given or 0, used.cached or 0)
        except LongthreadError as error:
            _log.error("What a request cost cannot be written: %s", error)

    async def _note(self, tx: Transaction, taken: int, given: int, cached: int) -> None:
        spent = SpentCall(self.names, taken, given, min(cached, taken), agent="")
        await note_spending(tx, self.asker, spent, self.settings)


def find_payer(incoming: Incoming, settings: Settings | None, upstream: str, model: str) -> CallPayer | None:
    """Return who pays for a call of a model; None: it is a server without login."""
    principal = incoming.principal
    if principal is None or settings is None:
        return None
    key = principal.key
    names: Iterable[str] = (f"{upstream}:{model}", model) if model else (f"{upstream}:",)
    return CallPayer(RunAsker(principal.user, key.id if key is not None else None), settings, tuple(names), key)


def _is_countable(incoming: Incoming) -> bool:
    """Whether the reply to a request that is passed on unread says what it used: no image does, no batch and no
    stream."""
    path = incoming.path.rstrip("/")
    if incoming.upload is not None:
        return path.startswith(_FREE_UPLOADS)
    if path not in _WITH_USAGE:
        return False
    try:
        return json.loads(incoming.body or b"{}").get("stream") is not True
    except (ValueError, AttributeError, RecursionError):
        return False
