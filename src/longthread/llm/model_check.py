"""Find out whether a model answers, and how large a call it takes."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from longthread.errors import ModelNotUsable
from longthread.llm.chat import CallOptions, ChatModel, reply_of
from longthread.llm.failures import ProviderError
from longthread.llm.models import RunModels, failure_reason
from longthread.llm.overflow import overflow_of
from longthread.messages.message import Message

if TYPE_CHECKING:
    from longthread.llm.context_windows import ContextWindows, WindowOrigin

_QUESTION = Message("user", "Reply with the word: ready")
_TOKENS = 64
"""Of the reply: also a model that thinks has begun by then."""
_TOO_MANY = 100_000_000
"""More tokens than a window has."""


async def check_model(models: RunModels, windows: ContextWindows) -> tuple[int, WindowOrigin]:
    """Ask a model a tiny question; return its window in tokens, and how that is known. Raises StoreError, and
    ModelNotUsable with what its provider says."""
    try:
        await reply_of(models.model, [_QUESTION], options=CallOptions(max_tokens=_TOKENS))
    except ProviderError as error:
        raise ModelNotUsable(model=models.name, reason=failure_reason(error, models.settings)) from error
    return await windows.find_out(models.model)


async def measure_window(model: ChatModel) -> int | None:
    """Return the window in tokens that a server names when it refuses a call, for a reply that no window holds; None:
    it names none. A server that answers instead is stopped at its first word."""
    try:
        async with aclosing(model.stream([_QUESTION], options=CallOptions(max_tokens=_TOO_MANY))) as chunks:
            async for _ in chunks:
                break
    except ProviderError as error:
        overflow = overflow_of(error)
        return overflow.limit if overflow is not None else None
    return None
