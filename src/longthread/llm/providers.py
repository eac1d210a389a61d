"""The providers that a model's name may begin with, the address of each, and the key for an address.

Code that sends a key asks for it here, by the address that it calls.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import SecretStr

from longthread.errors import ModelUnavailable
from longthread.settings import Settings

OWN = "own"
"""What the models of a user's own servers begin with: `own:NAME/model`."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider that a person can connect, by the `id` that its models' names begin with.

    `addresses` are its base URLs, the usual one first. A provider without one has an address for each customer, or is a
    server that listens at `port` of this machine by default. Names that begin with one of `families` need no provider.

    `key_variable` and `address_variable`: the variables of its own key and base URL; the settings have the same names.
    `api_path`: the path of its OpenAI-compatible API below the address. `reports_usage`: it takes `stream_options`.
    `list_path`: the path of its list of models. `list_prefix`: how names in it begin. `key_header`: the header of a key
    for it, else `Authorization`.

    `windows`: tokens of context of models whose names begin so; the first that fits is it. LangChain's profiles say the
    same. `window_setting`: what sets the window of such a server, as words in a sentence. `limit_option`: the name of
    the most tokens of a reply in LangChain's class.
    """

    id: str
    name: str
    chinese_name: str = ""
    addresses: tuple[str, ...] = ()
    port: int | None = None
    families: tuple[str, ...] = ()
    key_variable: str = ""
    address_variable: str = ""
    api_path: str = ""
    reports_usage: bool = True
    list_path: str = "/models"
    list_prefix: str = ""
    key_header: str = ""
    windows: tuple[tuple[str, int], ...] = ()
    window_setting: str = ""
    limit_option: str = "max_tokens"

    @property
    def key_setting(self) -> str:
        """The setting of its key: its own, or the common one."""
        return self.key_variable.lower() or "api_key"

    def own_key(self, settings: Settings) -> SecretStr | None:
        """Return the key that is set for this provider alone."""
        key: SecretStr | None = getattr(settings, self.key_setting) if self.key_variable else None
        return key

    def own_address(self, settings: Settings) -> str | None:
        """Return the base URL that is set instead of the usual one."""
        url: str | None = getattr(settings, self.address_variable.lower()) if self.address_variable else None
        return url


_OPENAI_WINDOWS = (
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
)
ROWS: Mapping[str, Provider] = {
    row.id: row
    for row in (
        Provider(
            "openai",
            "OpenAI",
            addresses=("https://api.openai.com/v1",),
            families=("gpt-", "o1", "o3"),
            key_variable="OPENAI_API_KEY",
            address_variable="OPENAI_BASE_URL",
            windows=_OPENAI_WINDOWS,
        ),
        Provider(
            "anthropic",
            "Anthropic",
            addresses=("https://api.anthropic.com",),
            families=("claude",),
            key_variable="ANTHROPIC_API_KEY",
            address_variable="ANTHROPIC_BASE_URL",
            list_path="/v1/models?limit=1000",
            key_header="x-api-key",
            windows=(("claude", 200_000),),
        ),
        Provider(
            "google_genai",
            "Google Gemini",
            addresses=("https://generativelanguage.googleapis.com/v1beta",),
            families=("gemini",),
            key_variable="GOOGLE_API_KEY",
            api_path="/openai",
            list_path="/models?pageSize=1000",
            list_prefix="models/",
            key_header="x-goog-api-key",
            windows=(("gemini-", 1_048_576),),
            limit_option="max_output_tokens",
        ),
        Provider("deepseek", "DeepSeek", "DeepSeek 深度求索", ("https://api.deepseek.com",)),
        Provider(
            "dashscope",
            "Qwen (DashScope)",
            "通义千问（DashScope）",
            (
                "https://dashscope.aliyuncs.com/compatible-mode/v1",
                "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            ),
        ),
        Provider(
            "zhipu", "Zhipu GLM", "智谱 GLM", ("https://open.bigmodel.cn/api/paas/v4", "https://api.z.ai/api/paas/v4")
        ),
        Provider(
            "moonshot", "Moonshot Kimi", "月之暗面 Kimi", ("https://api.moonshot.cn/v1", "https://api.moonshot.ai/v1")
        ),
        Provider(
            "siliconflow",
            "SiliconFlow",
            "硅基流动 SiliconFlow",
            ("https://api.siliconflow.cn/v1", "https://api.siliconflow.com/v1"),
        ),
        Provider("minimax", "MiniMax", addresses=("https://api.minimaxi.com/v1", "https://api.minimax.io/v1")),
        Provider("openrouter", "OpenRouter", addresses=("https://openrouter.ai/api/v1",)),
        Provider("azure", "Azure OpenAI", api_path="/openai/v1"),
        Provider("groq", "Groq", addresses=("https://api.groq.com/openai/v1",)),
        Provider("mistralai", "Mistral AI", addresses=("https://api.mistral.ai/v1",), reports_usage=False),
        Provider("xai", "xAI", addresses=("https://api.x.ai/v1",)),
        Provider(
            "ollama",
            "Ollama",
            port=11434,
            window_setting="OLLAMA_CONTEXT_LENGTH, or `num_ctx` in the Modelfile",
            limit_option="num_predict",
        ),
        Provider("lmstudio", "LM Studio", port=1234, window_setting="the model's Context Length in LM Studio"),
        Provider("vllm", "vLLM", port=8000),
        Provider("llamacpp", "llama.cpp", port=8080, window_setting="its `--ctx-size`"),
    )
}
"""The one list of providers, for the API and the page."""
LOCAL_SERVERS: Mapping[str, int] = {row.id: row.port for row in ROWS.values() if row.port is not None}
"""Servers with an OpenAI-compatible API, as providers, and the ports where they listen on this machine by default."""
PROVIDERS = frozenset(
    (
        *ROWS,
        OWN,
        *("anthropic_bedrock", "azure_ai", "azure_openai", "baseten", "bedrock", "bedrock_converse"),
        *("bedrock_mantle_anthropic", "bedrock_mantle_openai", "cohere", "fireworks"),
        *("google_anthropic_vertex", "google_vertexai", "huggingface", "ibm", "langsmith"),
        *("litellm", "meta", "nvidia", "perplexity", "together", "upstage"),
    )
)
"""Providers that can be connected, users' own servers, and providers that LangChain knows."""
_KNOWN = "openai, anthropic, google_genai, ollama, mistralai, groq, deepseek"


def split_name(name: str, settings: Settings) -> tuple[str, str]:
    """Split a name into provider and model. A colon may belong to the model: `qwen2.5:7b` names no provider. Raises
    ModelUnavailable: the name says no provider, or no model."""
    head, colon, tail = name.partition(":")
    if provider := read_provider(name):
        if not tail:
            raise ModelUnavailable(model=name, reason=f"After `{head}:` comes the name of a model.")
        return provider, tail
    if settings.base_url:
        return "openai", name
    if row := next((row for row in ROWS.values() if name.startswith(row.families)), None):
        return row.id, name
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


def read_provider(name: str) -> str:
    """Return the provider that a name begins with; empty: it begins with none."""
    head, colon, _ = name.partition(":")
    provider = head.replace("-", "_").lower()
    return provider if colon and provider in PROVIDERS else ""


def bare_name(name: str) -> str:
    """Return what a model with a provider's prefix, or an own server's, is called there."""
    head, _, tail = name.partition(":")
    return tail.partition("/")[2] if head == OWN else tail


def provider_of(name: str, settings: Settings) -> str:
    """Return the provider of a model's name. Raises ModelUnavailable: it names none."""
    return split_name(name, settings)[0]


def address_of(provider: str, settings: Settings) -> str:
    """Return the base URL of a provider: its vendor's, or the one that the settings name in its place. A provider
    whose address only its package knows has its own name."""
    row = ROWS.get(provider)
    usual = row.addresses[0] if row is not None and row.addresses else provider
    return ((row.own_address(settings) if row is not None else None) or usual).rstrip("/")


def is_near(url: str) -> bool:
    """Return whether a server is on this machine or network: by its address, or by a name without a domain."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host != "" and ("." not in host or host.endswith((".local", ".internal", ".localhost", ".lan")))


def window_setting(server: str) -> str:
    """Return what sets the context window of a kind of server, as words in a sentence."""
    words = next((row.window_setting for row in ROWS.values() if row.name == server), "")
    return words or "the server's own setting (Ollama: `num_ctx`, llama.cpp: `--ctx-size`)"


def window_of(model: str) -> int | None:
    """Return the context window of a model of OpenAI, Anthropic or Google, in tokens; None if its name is unknown."""
    windows = (window for row in ROWS.values() for window in row.windows)
    return next((tokens for name, tokens in windows if model.startswith(name)), None)


_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Credential:
    """A key, and the address that it was given for: a base URL, or the name of a provider without one."""

    key: SecretStr
    address: str

    def belongs_to(self, address: str) -> bool:
        """Whether the key may be sent to this address: it has the same scheme, host and port."""
        return _origin_of(self.address) == _origin_of(address)


def key_for(address: str, settings: Settings) -> SecretStr | None:
    """Return the key of the settings that was given for an address; None: there is none."""
    return next((each.key for each in _credentials(settings) if each.belongs_to(address)), None)


def keys_for_others(address: str, settings: Settings) -> set[str]:
    """Return the keys of the settings that may not be sent to an address."""
    own = key_for(address, settings)
    keys = {settings.api_key, settings.memory_embedding_api_key, *(row.own_key(settings) for row in ROWS.values())}
    return {key.get_secret_value() for key in keys if key is not None and key != own}


def embedding_key(settings: Settings) -> tuple[str, SecretStr | None]:
    """Return the address of the embedder, and its key: its own, else the one that was given for that address."""
    address = settings.memory_embedding_base_url or settings.base_url or address_of("openai", settings)
    return address, settings.memory_embedding_api_key or key_for(address, settings)


def provider_embedding_key(provider: str, settings: Settings) -> SecretStr | None:
    """Return the key for a provider's embedder. The embedder's own is the provider's, unless it was given for
    MEMORY_EMBEDDING_BASE_URL."""
    own = None if settings.memory_embedding_base_url else settings.memory_embedding_api_key
    return own or key_for(address_of(provider, settings), settings)


def _credentials(settings: Settings) -> Iterator[Credential]:
    """Yield the keys of the settings, with a base URL its own first, else those of vendors first."""
    common = _common(settings)
    if common is not None and settings.base_url:
        yield common
    for row in ROWS.values():
        key = row.own_key(settings)
        if key is None:
            continue
        own = Credential(key, address_of(row.id, settings))
        if row.id != "openai" or _is_openai_key(own, settings):
            yield own
    if common is not None and not settings.base_url:
        yield common


def _is_openai_key(own: Credential, settings: Settings) -> bool:
    """Return whether OPENAI_API_KEY is for OpenAI. With a server of one's own it is unknown whose it is, unless
    OPENAI_BASE_URL says it."""
    return not settings.base_url or bool(settings.openai_base_url) or own.belongs_to(settings.base_url)


def _common(settings: Settings) -> Credential | None:
    """Return LLM_API_KEY. It is for LLM_BASE_URL, else for the provider of the configured model, and where neither is
    configured, for the embedder's address, else for OpenAI."""
    if settings.api_key is None:
        return None
    if settings.base_url:
        return Credential(settings.api_key, settings.base_url)
    if settings.model in (None, "demo"):
        address = settings.memory_embedding_base_url or address_of("openai", settings)
        return Credential(settings.api_key, address)
    try:
        provider = provider_of(settings.model, settings)
    except ModelUnavailable:  # which is reported when the model is made
        return None
    # A server on this machine wants no key: this one is somebody else's.
    return None if provider in LOCAL_SERVERS else Credential(settings.api_key, address_of(provider, settings))


def _origin_of(address: str) -> tuple[str, str, int | None]:
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, parts.hostname or address, port or _PORTS.get(parts.scheme)
