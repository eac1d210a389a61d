"""What a call of a chat model raises, whichever provider it is.

Some errors say that a call exceeds the model's context window, and how large that is.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from typing import Any

from longthread.errors import EmbedderUnavailable, LongthreadError, ModelUnavailable
from longthread.errors.base import convert_errors
from longthread.view.condense import cut_middle

_AGAIN = frozenset({408, 409, 425})
"""Statuses below 500 after which the same request may succeed."""
_OVERLOADED = frozenset({503, 529})
_SHORTEST = 8
"""Characters of a secret to hide. A shorter one guards nothing, and would be found within words."""
_DEEPEST = 50
"""Levels of an error object that are kept. A provider may send thousands."""
_SECRET = re.compile(r"(?:key|token|secret|passw(?:or)?d|signature|sig|auth|credentials?)$", re.IGNORECASE)


class ProviderError(Exception):  # a run converts it to an error of ours
    """A call of a chat model failed.

    `status_code` is the HTTP status, or what stands for one; `retry_after` the seconds that the provider asks to wait;
    `body` its error object.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        retry_after: float | None = None,
        body: Any = None,
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.retry_after = retry_after
        self.body = body


class RateLimited(ProviderError):
    """More than the provider allows in a time."""


class ServerFailed(ProviderError):
    """The provider failed by itself."""


class Overloaded(ServerFailed):
    """The provider has too much to do."""


class ConnectionBroken(ProviderError):
    """The provider cannot be reached, or the connection to it broke. `address` is the one that was asked, if known."""

    def __init__(self, message: str, *, address: str = "", **about: Any) -> None:
        super().__init__(message, **about)
        self.address = address


class TimedOut(ConnectionBroken):
    """No answer came in time."""


class StreamTruncated(ConnectionBroken):
    """A reply ended before its end."""


class BadRequest(ProviderError):
    """The provider refuses what was sent."""


class AuthenticationFailed(BadRequest):
    """The key is missing or wrong, or does not allow this."""


class ReplyTooLong(BadRequest):
    """The reply went beyond a limit of ours, as of a model that repeats itself without an end: it was broken off."""


class ContextOverflow(BadRequest):
    """The messages do not fit into the model's context window."""


def error_of(
    status: int | None, message: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """Return the error for an HTTP status and what the provider said with it. No status: `ServerFailed`."""
    kind = ServerFailed if status is None else _kind(status)
    return kind(message, status_code=status, retry_after=retry_after(headers or {}), body=body)


def _kind(status: int) -> type[ProviderError]:
    if status == 429:
        return RateLimited
    if status in (401, 403):
        return AuthenticationFailed
    if status in _OVERLOADED:
        return Overloaded
    if status >= 500 or status in _AGAIN or status < 400:
        return ServerFailed
    return BadRequest


def names_secret(name: str) -> bool:
    """Whether what has this name, such as `api_key`, is a secret."""
    return _SECRET.search(name) is not None


def hide_secrets(value: Any, secrets: Collection[str], levels: int = _DEEPEST) -> Any:
    """Return a text, or each text of a JSON value, with `***` for these secrets: providers quote wrong keys. What lies
    deeper than so many levels is left out."""
    if isinstance(value, str):
        for secret in sorted(secrets, key=len, reverse=True):
            value = value.replace(secret, "***") if len(secret) >= _SHORTEST else value
        return value
    if isinstance(value, Mapping | list | tuple) and levels == 0:
        return "…"
    if isinstance(value, Mapping):
        return {hide_secrets(key, secrets): hide_secrets(each, secrets, levels - 1) for key, each in value.items()}
    return [hide_secrets(each, secrets, levels - 1) for each in value] if isinstance(value, list | tuple) else value


def without_secrets(error: ProviderError, secrets: Collection[str]) -> ProviderError:
    """Return the error, which tells none of these secrets any more."""
    error.args, error.body = (hide_secrets(str(error), secrets),), hide_secrets(error.body, secrets)
    return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait from `retry-after-ms` or `Retry-After`, which has seconds or a date."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        if (said := headers.get(name)) is None:
            continue
        try:
            seconds = float(said) / unit
        except ValueError:
            return _until(said, headers.get("date"))
        return seconds if 0 <= seconds < inf else None
    return None


def _until(date: str, sent: str | None) -> float | None:
    """Return the seconds between two dates of one answer: its clock need not be ours. Without the second one ours
    counts."""
    at = _moment(date)
    since = (_moment(sent) if sent is not None else None) or datetime.now(UTC)
    return max((at - since).total_seconds(), 0.0) if at is not None else None


def _moment(date: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(date)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause, that one's cause, and so on; each once, since an error may be its own cause."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error or its cause; each SDK stores it elsewhere."""
    for each in causes(error):
        response = getattr(each, "response", None)
        for status in (
            getattr(each, "status_code", None),
            getattr(response, "status_code", None),
            getattr(each, "code", None),
        ):
            if isinstance(status, int) and 100 <= status < 600:
                return status
    return None


def first_line(error: BaseException) -> str:
    """Return what an error says, as one sentence; its class if it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{(lines or [type(error).__name__])[0].rstrip('.')}."


def constructor_errors(refused: Callable[[Exception], LongthreadError]) -> AbstractContextManager[None]:
    """Raise `refused(error)` for whatever a provider's class raises while it is made. What already says which model or
    embedder is unavailable stays as it is."""
    return convert_errors(refused, keep=(ModelUnavailable, EmbedderUnavailable))


_STATUSES = frozenset({None, 400, 413, 422, 500, 502, 503})
"""Statuses that come with such errors. Without one, the error came in the middle of a stream."""
_TOO_LARGE = 413
_LANGCHAINS = "ContextOverflowError"
_LEAST, _MOST = 128, 100_000_000
"""Tokens that a window may have; any other number in an error is something else."""
_LEAST_TEXT = 400
"""A shorter text, in characters, is not halved."""
_RATE = re.compile(r"rate.?limit|\bper.{0,3}(?:second|sec|minute|min|hour|day)\b|\bTPM\b|\bRPM\b|quota", re.IGNORECASE)
"""Rate limits: the same call may succeed later."""
_OTHER = re.compile(
    r"\b(?:image|images|audio|video|file|pixels|megabytes)\b|output tokens allowed"
    r"|\bdeadline\b|\btime(?:d|s)?[ -]?out|\btime limit\b|\btook too long\b",
    re.IGNORECASE,
)
"""Other sizes, and timeouts."""

_WHAT = r"(?:prompt|input|inputs|context|request|conversation|messages?)"
_OVER = r"(?:too (?:long|large|big)|longer than|greater than|larger than|exceed(?:s|ed|ing)?\b|over the)"
_OVERFLOW = re.compile(
    # The codes and types of OpenAI, llama.cpp, GitHub, Anthropic, LiteLLM.
    r"context_(?:length|window|size)_exceeded|exceed_context_size|tokens_limit_reached|ContextWindowExceeded"
    r"|model_context_window|request_too_large"
    # OpenAI, DeepSeek, Azure, vLLM, OpenRouter, SGLang, xAI, Mistral, Fireworks.
    r"|(?:maximum|max\.?) (?:context|prompt|model|input|sequence) (?:length|window|size)"
    r"|model'?s context (?:length|window)"
    # Anthropic, Gemini, llama.cpp, Ollama, LM Studio, Bedrock, SGLang, MiniMax, Cohere and others.
    rf"|\b{_WHAT}\b[^.:]{{0,80}}?\b{_OVER}"
    r"|context (?:length|window|size|limit)[^.]{0,40}(?:exceed|not enough|overflow)|exceed[^.]{0,60}\bcontext\b"
    r"|overflows?\b[^.]{0,20}context|context[^.]{0,20}\boverflow"
    # Groq, Cerebras; TGI, Together; Qwen; Moonshot; TensorRT-LLM; Cloudflare.
    r"|reduce the length of (?:the )?(?:messages|prompt|input)|\btoo many (?:input )?tokens\b"
    r"|`?inputs`? (?:tokens )?(?:\+|must have less)|range of input length"
    r"|exceed(?:ed|s)? (?:the )?(?:model )?token limit"
    r"|input tokens? (?:count )?exceed|tokens? .{0,40}model only supports|max_num_tokens|max_seq_len|max_model_len"
    # Ollama, llama.cpp: the template found no question in what was left of the prompt.
    r"|no user query found"
    r"|\bn_ctx\b|\bnumber of (?:input )?tokens\b[^.]{0,40}\bnot exceed"
    r"|(?:上下文|提示词?|输入|Prompt).{0,16}(?:超长|过长|超出|超过|超限)|最大(?:上下文|输入)(?:长度|窗口)",
    re.IGNORECASE | re.DOTALL,
)
_NUMBER = r"(\d[\d,_]*(?:\.\d+)?(?: ?[km](?![a-z]))?)"
"""Also `128k`: k means a thousand, the smaller reading."""
_AT_ONCE = re.compile(rf"request too large.{{0,400}}?\blimit:? {_NUMBER}\W+requested:? {_NUMBER}", re.I | re.DOTALL)
"""One call exceeds the limit of a minute: it never succeeds."""
_LIMITS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"n_ctx\W+{_NUMBER}",
        rf"context (?:length|window|size)(?: limit)?(?: is| of|:)*(?: only)? \(?{_NUMBER}",
        r"(?:maximum|max\.?) (?:context|prompt|model|input|sequence) (?:length|window|size)"
        rf"(?: is| of|:|\W)*(?:only )?\(?{_NUMBER}",
        rf"(?:max_seq_len|max_model_len|max_num_tokens)\W*(?:of )?{_NUMBER}",
        rf"> ?{_NUMBER}(?: maximum|,|\.|\s|$)",
        rf"(?:must be <=|must have less than|cannot exceed|only supports up to|not exceed max_num_tokens) \(?{_NUMBER}",
        rf"(?:number of tokens|length) allowed\W{{0,3}}{_NUMBER}",
        rf"allowed (?:input |token )?(?:length|size) \(?{_NUMBER}",
        rf"\bnot exceed \(?{_NUMBER}|最大(?:上下文|输入)?(?:长度|窗口)\D{{0,8}}{_NUMBER}",
        rf"limit(?: is| of|:) \(?{_NUMBER}",
        rf"{_NUMBER} (?:maximum|max) context",
        rf"range of input length should be \[\d+, ?{_NUMBER}\]",
        rf"max(?:imum)? (?:input )?(?:tokens|size): {_NUMBER}",
    )
]


@dataclass(frozen=True, slots=True)
class Overflow:
    """A call exceeded its model's window. `limit` is that window in tokens; None: not in the error. A server that said
    nothing read so many tokens of it (`in_silence`)."""

    limit: int | None = None
    in_silence: int = 0


def overflow_of(error: BaseException) -> Overflow | None:
    """Return what an error says of the context window; None if it is about something else."""
    status, text = status_of(error), "\n".join(_texts(error))
    if (at_once := _AT_ONCE.search(text)) and _tokens(at_once[2]) > (limit := _tokens(at_once[1])) >= _LEAST:
        return Overflow(limit)
    if status not in _STATUSES or _RATE.search(text):
        return None
    told = any(_is_overflow(each) for each in causes(error))
    if told or status == _TOO_LARGE or (_OVERFLOW.search(text) and not _OTHER.search(text)):
        return Overflow(_limit(text))
    return None


def _is_overflow(error: BaseException) -> bool:
    return isinstance(error, ContextOverflow) or any(kind.__name__ == _LANGCHAINS for kind in type(error).__mro__)


async def asked_in_room(ask: Callable[[str], Awaitable[str]], text: str) -> str:
    """Return `ask(text)`. If the text is too long for the model, ask again with half of it, its middle cut out, and
    so on. Raises what else `ask` raises."""
    while True:
        try:
            return await ask(text)
        except Exception as error:  # LangChain models raise anything; all but one kind is re-raised
            if overflow_of(error) is None or len(text) < _LEAST_TEXT:
                raise
        text = cut_middle(text, len(text) // 2)


def _limit(text: str) -> int | None:
    for pattern in _LIMITS:
        for match in pattern.finditer(text):
            number = _tokens(next(group for group in match.groups() if group))
            if _LEAST <= number <= _MOST:
                return number
    return None


def _tokens(said: str) -> int:
    """Parse a number in an error: `8,192`, `32k`, `1.5 M`."""
    unit = {"k": 1_000, "m": 1_000_000}.get(said[-1].casefold(), 1)
    return int(float(re.sub(r"[^\d.]", "", said)) * unit)


def _texts(error: BaseException) -> Iterator[str]:
    for each in causes(error):
        yield str(each)
        if body := getattr(each, "body", None):
            yield str(body)
