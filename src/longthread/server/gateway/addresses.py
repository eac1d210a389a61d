"""Addresses that clients get wrong, and what is right. Pure."""

from __future__ import annotations

import re

_ANTHROPIC = ("/messages/count_tokens", "/messages/batches", "/messages")
_OPENAI = ("/chat/completions", "/responses", "/completions", "/embeddings", "/models", "/files")
_OLLAMA = re.compile(r"/api/(?:chat|generate|tags|show|embed|embeddings|ps|pull|version)")
_GEMINI = re.compile(r"/v1\w*/models/[^/]+:(?:\w*Contents?|countTokens|predict\w*)")
_AZURE = re.compile(r"/openai/deployments/[^/]+(?:/.*)?")


def is_anthropic(path: str) -> bool:
    """Whether a path means Anthropic's dialect, wherever it begins."""
    return path.rstrip("/").endswith(_ANTHROPIC) or path.startswith("/anthropic")


def hint(path: str, own: str) -> str:
    """Return what is wrong with a path that the gateway has not, and which address a client needs. `own` is the
    gateway's, such as `http://127.0.0.1:8766`."""
    missing = f"The gateway has no {path}."
    place = path.rstrip("/")
    if place.startswith("/v1/v1"):
        return f"{missing} This client adds /v1 itself: give it the address without /v1, {own}"
    if _OLLAMA.fullmatch(place):
        return f"{missing} It does not speak Ollama's own API. Choose an OpenAI-compatible provider, with {own}/v1"
    if _GEMINI.fullmatch(place):
        return f"{missing} It does not speak Gemini's own API. Choose an OpenAI-compatible provider, with {own}/v1"
    if _AZURE.fullmatch(place):
        return f"{missing} It has no deployments. Choose OpenAI and not Azure, with {own}/v1, and name the model"
    if is_anthropic(path):
        return f"{missing} Anthropic's clients want the address alone, {own}, and ask {own}/v1/messages"
    if end := next((each for each in _OPENAI if place.endswith(each)), None):
        return f"{missing} OpenAI's clients want the address with /v1, {own}/v1, and ask {own}/v1{end}"
    return f"{missing} OpenAI's clients want the address {own}/v1, Anthropic's want {own}"


def is_wrong(path: str) -> bool:
    """Whether a path is none of the gateway's endpoints, although it may begin as they do."""
    place = path.rstrip("/")
    twice = any(place.count(end) > 1 for end in ("/chat/completions", "/messages", "/v1"))
    return not path.startswith("/v1/") or place == "/v1" or twice or _GEMINI.fullmatch(place) is not None
