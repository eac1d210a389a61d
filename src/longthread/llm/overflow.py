"""Providers' errors that say a call exceeds the model's context window, and how large that is."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from longthread.llm.failures import ContextOverflow, causes, status_of
from longthread.view.condense import cut_middle

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
