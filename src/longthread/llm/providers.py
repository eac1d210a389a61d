"""The providers that a model's name may begin with, and the address of each."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from longthread.errors import ModelUnavailable
from longthread.settings import Settings

PROVIDERS = frozenset(
    (
        *("anthropic", "anthropic_bedrock", "azure_ai", "azure_openai", "baseten", "bedrock", "bedrock_converse"),
        *("bedrock_mantle_anthropic", "bedrock_mantle_openai", "cohere", "deepseek", "fireworks"),
        *("google_anthropic_vertex", "google_genai", "google_vertexai", "groq", "huggingface", "ibm", "langsmith"),
        *("litellm", "meta", "mistralai", "nvidia", "ollama", "openai", "openrouter", "perplexity", "together"),
        *("upstage", "xai", "lmstudio", "llamacpp", "vllm"),
    )
)
"""The providers of the core, those that LangChain knows, and servers on this machine."""
LOCAL_SERVERS: Mapping[str, int] = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
"""Servers with an OpenAI-compatible API, as providers, and the ports where they listen on this machine by default."""
ADDRESSES: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "deepseek": "https://api.deepseek.com",
    "google_genai": "https://generativelanguage.googleapis.com/v1beta",
    "groq": "https://api.groq.com/openai/v1",
    "mistralai": "https://api.mistral.ai/v1",
    "openai": "https://api.openai.com/v1",
    "xai": "https://api.x.ai/v1",
}
"""The base URLs of vendors."""
_WINDOW_SETTINGS = {
    "Ollama": "OLLAMA_CONTEXT_LENGTH, or `num_ctx` in the Modelfile",
    "llama.cpp": "its `--ctx-size`",
    "LM Studio": "the model's Context Length in LM Studio",
}
_FAMILIES = {"gpt-": "openai", "o1": "openai", "o3": "openai", "claude": "anthropic", "gemini": "google_genai"}
_KNOWN = "openai, anthropic, google_genai, ollama, mistralai, groq, deepseek"


def split_name(name: str, settings: Settings) -> tuple[str, str]:
    """Split a name into provider and model. A colon may belong to the model: `qwen2.5:7b` names no provider. Raises
    ModelUnavailable: the name says no provider, or no model."""
    head, colon, tail = name.partition(":")
    provider = head.replace("-", "_").lower()
    if colon and provider in PROVIDERS:
        if not tail:
            raise ModelUnavailable(model=name, reason=f"After `{head}:` comes the name of a model.")
        return provider, tail
    if settings.base_url:
        return "openai", name
    family = next((family for family in _FAMILIES if name.startswith(family)), None)
    if family:
        return _FAMILIES[family], name
    server = "set LLM_BASE_URL, as in http://localhost:11434/v1"
    if colon:
        reason = (
            f"There is no provider `{head}`. Known are {_KNOWN} and more. For a server's model of this name, {server}."
        )
    else:
        reason = (
            "Name the provider too, as in `openai:gpt-5` or `anthropic:claude-sonnet-4-5`; "
            f"for an OpenAI-compatible server (Ollama, vLLM, LM Studio) {server}."
        )
    raise ModelUnavailable(model=name, reason=reason)


def provider_of(name: str, settings: Settings) -> str:
    """Return the provider of a model's name. Raises ModelUnavailable: it names none."""
    return split_name(name, settings)[0]


def address_of(provider: str, settings: Settings) -> str:
    """Return the base URL of a provider: its vendor's, or the one that the settings name in its place. A provider
    whose address only its package knows has its own name."""
    own = {"anthropic": settings.anthropic_base_url, "openai": settings.openai_base_url}
    return (own.get(provider) or ADDRESSES.get(provider, provider)).rstrip("/")


def is_near(url: str) -> bool:
    """Return whether a server is on this machine or network: by its address, or by a name without a domain."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host != "" and ("." not in host or host.endswith((".local", ".internal", ".localhost", ".lan")))


def window_setting(server: str) -> str:
    """Return what sets the context window of a kind of server, as words in a sentence."""
    return _WINDOW_SETTINGS.get(server, "the server's own setting (Ollama: `num_ctx`, llama.cpp: `--ctx-size`)")
