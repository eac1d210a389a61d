"""What vendors add to chat completions and want back: `reasoning_content`, and Gemini's thought signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longthread_testing.emulator.faults import Refused, RuleBroken
from longthread_testing.emulator.rules import ProviderRules
from longthread_testing.emulator.seals import seal, unseal

# The texts of the vendors' errors. Clients recognize them.
_MISSING = {
    "deepseek": "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "kimi": "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}",
}
_UNSIGNED = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:{name}` , position {index}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures "
    "for more details."
)
_NOT_VALID = "Thought signature is not valid"
_SENTINELS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""What a client may send instead of a signature ("Thought signatures", ai.google.dev)."""

# No vendor has an error of its own for altered reasoning.
_ALTERED = "The reasoning_content of the assistant message at index {index} is not what the model said."


class HiddenFields:
    """The fields of the replies so far, in memory: reasoning is plain text, so only its maker knows what it was."""

    def __init__(self, rules: ProviderRules) -> None:
        self._rules = rules
        self._reasoning: dict[str, set[str]] = {}

    def add(self, reply: dict[str, Any], said: str) -> None:
        """Add the fields to the message of a reply."""
        calls = reply.get("tool_calls") or ()
        if self._rules.reasoning_content:
            # Without white space at its end: a client that drops that alters what no vendor checks.
            reply.setdefault("reasoning_content", f"They said: {said[:80].rstrip()}")
            for call in calls:
                self._reasoning.setdefault(call["id"], set()).add(reply["reasoning_content"])
        if self._rules.thought_signatures and calls:
            signature = seal(self._rules.secret, {"call": calls[0]["id"]})
            calls[0].setdefault("extra_content", {"google": {"thought_signature": signature}})

    def check(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Raises RuleBroken with the vendor's error."""
        if self._rules.reasoning_content:
            self._check_reasoning(messages, _MISSING[self._rules.reasoning_content])
        if self._rules.thought_signatures:
            self._check_signatures(messages)

    def _check_reasoning(self, messages: Sequence[Mapping[str, Any]], missing: str) -> None:
        for index, call, message in _first_calls(messages, 0):
            told = message.get("reasoning_content")
            if not told:
                raise RuleBroken(Refused(400, missing.format(index=index)))
            if told not in self._reasoning.get(call["id"], (told,)):
                raise RuleBroken(Refused(400, _ALTERED.format(index=index)))

    def _check_signatures(self, messages: Sequence[Mapping[str, Any]]) -> None:
        turn = max((place for place, each in enumerate(messages) if each["role"] == "user"), default=0)
        for index, call, _ in _first_calls(messages, turn):
            signature = ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature")
            if not signature:
                raise RuleBroken(Refused(400, _UNSIGNED.format(name=call["function"]["name"], index=index)))
            if signature not in _SENTINELS and (unseal(self._rules.secret, signature) or {}).get("call") != call["id"]:
                raise RuleBroken(Refused(400, _NOT_VALID))


def _first_calls(
    messages: Sequence[Mapping[str, Any]], begin: int
) -> Iterator[tuple[int, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the index, the first call and the message of each assistant message with calls."""
    for index, message in enumerate(messages):
        if index >= begin and message.get("tool_calls"):
            yield index, message["tool_calls"][0], message
