"""Facts about models by name: context windows, and what the core's wires cannot ask them."""

from __future__ import annotations

import re

_CLAUDE = 200_000
_WINDOWS = (
    ("gpt-3.5", 16_385),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4", 8_192),
    ("gpt-5.3-codex-spark", 128_000),
    ("gpt-5.3", 400_000),
    ("gpt-5.4-mini", 400_000),
    ("gpt-5.4-nano", 400_000),
    ("gpt-5.4", 1_050_000),
    ("gpt-5.5", 1_050_000),
    ("gpt-5.6", 1_050_000),
    ("gpt-5", 272_000),
    ("gpt-6", 1_050_000),
    ("o1-mini", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("claude", _CLAUDE),
    ("gemini-", 1_048_576),
)
"""Tokens of context of models whose names begin so; the first that fits is it. LangChain's profiles say the same."""
_RESPONSES_ONLY = re.compile(r"codex|^(?:gpt-5(?:\.\d+)?-pro|o[13]-pro|computer-use|gpt-5\.6-sol|o\d.*-deep-research)")


def window_of(model: str) -> int | None:
    """Return the context window of a model of OpenAI, Anthropic or Google, in tokens; None if its name is unknown."""
    return next((tokens for name, tokens in _WINDOWS if model.startswith(name)), None)


def needs_responses(model: str) -> bool:
    """Return whether OpenAI offers a model only through Responses, which the core does not speak."""
    return bool(_RESPONSES_ONLY.search(model))
