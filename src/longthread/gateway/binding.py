"""What hidden parts are bound to, by the vendor of a model. Pure.

Bound to the *prefix*: they hold behind exactly what they were made behind, and nowhere else. Bound to their *call*:
they belong beside the reply that they came with, whatever the client changed before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.parts import Part

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
_BOUND_TO_PREFIX = frozenset({"anthropic"})
"""Vendors that bind hidden parts to all that went before. The others bind them to their call."""


@lru_cache(256)
def vendor_of(model: str) -> str | None:
    """Return the vendor of a model; None: nobody knows it."""
    for vendor, names in _MODELS.items():
        if re.search(rf"(?:^|[/.:_-])(?:{names})", model, re.IGNORECASE):
            return vendor
    return None


def binding_of(model: str) -> Binding | None:
    """Return what a model's vendor binds hidden parts to; None: nobody knows the model."""
    vendor = vendor_of(model)
    return None if vendor is None else "prefix" if vendor in _BOUND_TO_PREFIX else "call"


def is_bound_to_call(dialect: Dialect, model: str, hidden: Iterable[Part]) -> bool:
    """Return whether a reply's hidden parts are bound to their call. For an unknown model these parts tell: a signature
    in a dialect of Anthropic's is bound to the prefix, and text that nobody signed is not."""
    known = binding_of(model)
    return known == "call" if known else not any(map(dialect.binds_prefix, hidden))


def kin_of(family: str, model: str, hidden: Iterable[Part]) -> str:
    """Return which models take a reply's hidden parts: with a signature those of its family, and otherwise all of the
    vendor's."""
    return family if any(part.value for part in hidden) else vendor_of(model) or family
