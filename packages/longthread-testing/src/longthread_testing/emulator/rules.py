"""The vendors' rules that a `ProviderEmulator` keeps. Each is a switch, and names its source."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

_VERSION = re.compile(r"[-.@_]?\d[\w.]*|-latest\b")
_CLAUDE = re.compile(r"\bclaude\b.*?\b(opus|sonnet|haiku|fable|mythos)\b")


def model_family(model: str) -> str:
    """Return the line of a model, without its version: `claude-opus` for `claude-opus-5-5`, `gpt` for `gpt-5`."""
    if line := _CLAUDE.search(model):
        return f"claude-{line[1]}"
    return _VERSION.sub("", model) or model


@dataclass(frozen=True)
class ProviderRules:
    """Which rules of the vendors the emulator keeps. Off, a rule is that of a provider without it."""

    signatures: bool = False
    """Anthropic: a reply thinks when asked to, and each thinking block is signed. A block that comes back is refused
    without its signature, altered, or from another model family. Source: platform.claude.com, "Extended thinking",
    and the texts of the errors."""

    binding: bool = False
    """Anthropic: a signature holds only after what it was made after: system, tools, all earlier messages and all
    earlier thinking. It needs `signatures`. Source: `BetaThinkingBlockBindingParam` in the SDK `anthropic` 2.14."""

    display: Literal["omitted", "summarized"] = "omitted"
    """Anthropic: how thinking is shown if the request does not say; `omitted` is an empty text with a signature, the
    default of the newest models. Source: "Controlling thinking display", platform.claude.com."""

    thinking_first: bool = True
    """Anthropic: with `thinking.type: enabled`, the last assistant message of a tool loop starts with thinking. It
    needs `signatures`. Source: the text of the error, and "Extended thinking with tool use", platform.claude.com."""

    threads: bool = True
    """Anthropic: message threads, for requests with the beta `message-threads-2026-08-12`. Off: `thread` is an unknown
    field. Source: `BetaMessageThreadParam` and the errors `Thread…Error` in the SDK `anthropic` 2.14."""

    reasoning: bool = True
    """OpenAI Responses: replies begin with a reasoning item whose `encrypted_content` is bound to its id and to the
    item after it. Altered, moved or parted from it, it is refused. Source: `ResponseReasoningItem` in the SDK `openai`
    3.57, and the texts of the errors."""

    stored: bool = True
    """OpenAI Responses: `store`, `previous_response_id` and `item_reference`. Off, the provider holds nothing, as a
    stateless server. Source: "Conversation state", developers.openai.com, and the texts of the errors."""

    reasoning_content: Literal["deepseek", "kimi"] | None = None
    """Chat Completions of DeepSeek and Kimi: replies carry `reasoning_content`, and each assistant message with tool
    calls must come back with it, unmodified. It chooses whose error the client gets. Source: "Thinking mode",
    api-docs.deepseek.com; "Use thinking models", platform.moonshot.ai; the texts of the errors."""

    thought_signatures: bool = False
    """Chat Completions of Gemini: the first call of each reply carries `extra_content.google.thought_signature`, and
    must come back with it until the user speaks again. Source: "Thought signatures", ai.google.dev."""

    family: Callable[[str], str] = model_family
    """Which models read each other's thinking, by name. Source: `model_binding_mismatch` in the SDK `anthropic`."""

    secret: bytes = b"longthread provider emulator"
    """What signatures and encrypted content are made with. Emulators with one secret are one provider."""

    def __post_init__(self) -> None:
        if self.binding and not self.signatures:
            raise ValueError("binding=True needs signatures=True: only signed thinking is bound.")
