"""Anthropic's rules on thinking blocks: how they are signed, and when they are refused.

A signature seals the text of its block, the model family, and a hash of all before it: system, tools, the visible
blocks of all messages, and the signatures of all earlier thinking. So one missing block breaks all later ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longthread_testing.emulator.faults import Refused, RuleBroken
from longthread_testing.emulator.rules import ProviderRules
from longthread_testing.emulator.seals import canonical, digest, seal, unseal

HIDDEN = {"thinking": "signature", "redacted_thinking": "data"}
"""The kinds of blocks that are signed, and the field that proves each."""

BINDING_BETA = "thinking-binding-controls-2026-08-01"

# The texts of the vendor's errors. Clients recognize them.
_INVALID = "Invalid `{field}` in `{kind}` block"
_BOUND = (
    "{invalid}. The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
_MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must "
    "remain as they were in the original response."
)
_EXPECTED = (
    "Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` is enabled, a final `assistant` "
    "message must start with a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks). We "
    "recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
)
_DISABLED = (
    "When thinking is disabled, an `assistant` message in the final position cannot contain `{kind}`. To use thinking "
    "blocks, enable `thinking` in your request."
)


def asks_for_thinking(body: Mapping[str, Any]) -> bool:
    """Whether the request asks for thinking. In the mode `between_tools`, only a script's own blocks are thinking."""
    return mode(body) in ("enabled", "adaptive")


def mode(body: Mapping[str, Any]) -> str:
    return str((body.get("thinking") or {}).get("type") or "disabled")


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """The blocks of a message or a prompt: a text is one block, an empty one none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [*(content or ())]


@dataclass
class Prefix:
    """What a request has said so far. `transformations` are the blocks that failed a check and did not fail the
    request: dropped because it lets the provider, or shown because `binding` is off."""

    hash: hashlib.blake2b
    transformations: list[dict[str, str]]

    def add(self, value: Any) -> None:
        self.hash.update(canonical(value) + b"\n")

    def digest(self) -> str:
        return self.hash.copy().hexdigest()


def check(body: Mapping[str, Any], rules: ProviderRules) -> Prefix:
    """Return what the request's reply is bound to. Raises RuleBroken with the vendor's 400."""
    prefix = Prefix(hashlib.blake2b(digest_size=12), [])
    prefix.add([[_visible(each) for each in blocks_of(body.get("system"))], [*map(_plain, body.get("tools") or ())]])
    if not rules.signatures:
        return prefix
    messages = body.get("messages") or []
    last = max((place for place, each in enumerate(messages) if each["role"] == "assistant"), default=-1)
    _check_last(body, messages, last, rules)
    role = ""
    for number, message in enumerate(messages):
        # Consecutive turns of one role are one. Source: the Messages API's reference, on `messages`.
        if message["role"] != role:
            prefix.add(message["role"])
        role = message["role"]
        for place, block in enumerate(blocks_of(message.get("content"))):
            if block["type"] in HIDDEN:
                path = f"messages.{number}.content.{place}"
                _check_block(block, path, _claims(block, path, rules, latest=number == last), body, prefix, rules)
            else:
                prefix.add(_visible(block))
    return prefix


def _check_block(
    block: Mapping[str, Any],
    path: str,
    claims: Mapping[str, Any],
    body: Mapping[str, Any],
    prefix: Prefix,
    rules: ProviderRules,
) -> None:
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    drop = binding.get("prefix_mismatch_behavior") == "drop_block"
    reason = "" if claims["prefix"] == prefix.digest() else "prefix_binding_mismatch"
    if claims["family"] != rules.family(str(body.get("model"))):
        reason = "model_binding_mismatch"
    allowed = reason == "prefix_binding_mismatch" and not rules.binding
    if reason and not allowed and not drop:
        invalid = _INVALID.format(field=HIDDEN[block["type"]], kind=block["type"])
        raise RuleBroken(Refused(400, f"{path}: {_BOUND.format(invalid=invalid)}"))
    if reason:
        kind = "thinking_mismatch_allowed" if allowed else "thinking_dropped"
        prefix.transformations.append({"type": kind, "path": path, "reason": reason})
    if not reason or allowed:
        prefix.add(block[HIDDEN[block["type"]]])


def _claims(block: Mapping[str, Any], path: str, rules: ProviderRules, *, latest: bool) -> dict[str, Any]:
    kind, field = block["type"], HIDDEN[block["type"]]
    claims = unseal(rules.secret, block.get(field))
    if claims is None or claims.get("kind") != kind:
        raise RuleBroken(Refused(400, f"{path}: {_INVALID.format(field=field, kind=kind)}"))
    if claims["text"] != digest(block.get("thinking", "")):
        problem = _MODIFIED if latest else _INVALID.format(field=field, kind=kind)
        raise RuleBroken(Refused(400, f"{path}: {problem}"))
    return claims


def _check_last(
    body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], last: int, rules: ProviderRules
) -> None:
    """Check the last assistant message, if it is at the end or its tool results are."""
    first = last
    while first > 0 and messages[first - 1]["role"] == "assistant":
        first -= 1
    blocks = [block for each in messages[max(first, 0) : last + 1] for block in blocks_of(each.get("content"))]
    after = [block["type"] for each in messages[last + 1 :] for block in blocks_of(each.get("content"))]
    if not blocks or (after and after[0] != "tool_result"):
        return
    hidden = [place for place, block in enumerate(blocks) if block["type"] in HIDDEN]
    if not asks_for_thinking(body) and mode(body) != "between_tools" and hidden:
        problem = _DISABLED.format(kind=blocks[hidden[0]]["type"])
        raise RuleBroken(Refused(400, f"messages.{last}.content.{hidden[0]}.type: {problem}"))
    called = any(block["type"] == "tool_use" for block in blocks)
    if rules.thinking_first and mode(body) == "enabled" and called and 0 not in hidden:
        problem = _EXPECTED.format(kind=blocks[0]["type"])
        raise RuleBroken(Refused(400, f"messages.{last}.content.0.type: {problem}"))


def sign_blocks(
    blocks: Sequence[Mapping[str, Any]],
    body: Mapping[str, Any],
    prefix: Prefix,
    rules: ProviderRules,
    number: str,
) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a reply, its thinking signed and shown as the request asks for. `number` makes the
    signatures of two equal replies differ, as those of the vendor do."""
    display = (body.get("thinking") or {}).get("display") or rules.display
    if not body["messages"] or body["messages"][-1]["role"] != "assistant":
        prefix.add("assistant")
    for place, block in enumerate(blocks):
        kind = block["type"]
        if kind not in HIDDEN:
            prefix.add(_visible(block))
            yield dict(block)
            continue
        made = {"type": kind} if kind == "redacted_thinking" else {"type": kind, "thinking": block["thinking"]}
        if kind == "thinking" and display == "omitted":
            made["thinking"] = ""
        claims = {
            "kind": kind,
            "number": f"{number}.{place}",
            "family": rules.family(str(body.get("model"))),
            "text": digest(made.get("thinking", "")),
            "prefix": prefix.digest(),
        }
        made[HIDDEN[kind]] = seal(rules.secret, claims)
        prefix.add(made[HIDDEN[kind]])
        yield made


def _visible(block: Mapping[str, Any]) -> Any:
    """The block without what is exempt from the binding: `cache_control`, and nulls."""
    kept = _plain(block)
    if kept.get("type") == "tool_result":
        kept["content"] = [_plain(each) for each in blocks_of(kept.get("content"))]
        kept["is_error"] = bool(kept.get("is_error"))
    return kept


def _plain(block: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control" and value is not None}
