"""OpenAI's rules on reasoning items: their encrypted content is theirs alone, and they stay before what they led to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longthread_testing.emulator.faults import Refused, RuleBroken
from longthread_testing.emulator.response_store import ResponseStore
from longthread_testing.emulator.seals import seal, unseal

# The texts of the vendor's errors. Clients recognize them.
_UNREADABLE = (
    "The encrypted content {start}...{end} could not be verified. Reason: Encrypted content could not be decrypted or "
    "parsed."
)
_OTHER_ID = (
    "The encrypted content for item {id} could not be verified. Reason: Encrypted content item_id did not match the "
    "target item id."
)
_NO_FOLLOWER = "Item '{id}' of type 'reasoning' was provided without its required following item."
_NO_REASONING = "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."


def encrypt_reasoning(items: Sequence[dict[str, Any]], secret: bytes) -> list[dict[str, Any]]:
    """Return a reply's items, the reasoning with content that binds it to its id and to the item after it."""
    done = []
    for item, after in zip(items, [*items[1:], None], strict=True):
        claims = {"item": item["id"], "next": after and after["id"], "kind": after and after["type"]}
        secrets = {"encrypted_content": seal(secret, claims)} if item["type"] == "reasoning" else {}
        done.append({**item, **secrets})
    return done


def check_items(items: Sequence[Mapping[str, Any]], begin: int, store: ResponseStore, secret: bytes) -> None:
    """Check the items from `begin` on; those before are the provider's own. Raises RuleBroken with the vendor's
    error."""
    for place in range(begin, len(items)):
        item = items[place]
        if item["type"] in ("reasoning", "compaction"):
            after = items[place + 1] if place + 1 < len(items) else None
            _check_sealed(item, after, secret)
        before = items[place - 1].get("id") if place else None
        reasoning = store.reasoning_of(item.get("id"))
        if reasoning and before != reasoning:
            message = _NO_REASONING.format(id=item["id"], kind=item["type"], reasoning=reasoning)
            raise RuleBroken(Refused(400, message, param="input"))


def _check_sealed(item: Mapping[str, Any], after: Mapping[str, Any] | None, secret: bytes) -> None:
    text = str(item.get("encrypted_content"))
    claims = unseal(secret, text)
    id_ = item.get("id")
    if claims is None:
        message = _UNREADABLE.format(start=text[:4], end=text[-4:])
        raise RuleBroken(Refused(400, message, "invalid_encrypted_content"))
    if id_ is not None and id_ != claims["item"]:
        raise RuleBroken(Refused(400, _OTHER_ID.format(id=id_), "invalid_encrypted_content"))
    if item["type"] == "reasoning" and claims["next"] and not _follows(after, claims):
        raise RuleBroken(Refused(400, _NO_FOLLOWER.format(id=claims["item"]), param="input"))


def _follows(after: Mapping[str, Any] | None, claims: Mapping[str, Any]) -> bool:
    """Whether `after` is the item that followed. Clients may leave out the ids of what is not stored."""
    if after is None or after["type"] != claims["kind"]:
        return False
    return after.get("id") in (None, claims["next"])
