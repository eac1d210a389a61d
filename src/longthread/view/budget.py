"""How many tokens the messages of one model call may have."""

from __future__ import annotations

from longthread.errors import WindowTooSmall

SAFETY = 0.10
"""The part of the window that is left free, for what an estimate misses (document 004 §4.1)."""
LEAST = 256
"""Tokens that the messages need at the least: with fewer, not even a question and one result can be shown."""
LEAST_REPLY = 256
"""Tokens that are left for the reply at the least, where prompt and tools leave no room for more."""
EXTRA_SHARE = 0.3
"""The part of the window that may go to what helps and can be left out, such as known facts."""


def message_budget(window: int, *, output: int, fixed: int, least: int = LEAST) -> int:
    """The window less safety, the reserve for the output and what is fixed: system prompt and tools.

    All are tokens. A result below `least` says that the window is too small.
    """
    return _free(window) - fixed - reply_reserve(window, output=output, fixed=fixed, least=least)


def reply_reserve(window: int, *, output: int, fixed: int, least: int = LEAST) -> int:
    """What is left free for the reply.

    That is `output`, or a quarter of the window where `output` is more: it would leave no room. Where the messages have
    less than `least` beside that, it gives way to them, down to `LEAST_REPLY`.
    """
    usual = min(output, window // 4)
    return max(min(usual, _free(window) - fixed - least), min(usual, LEAST_REPLY))


def extra_budget(window: int, room: int) -> int:
    """What known facts may take of the `room` that messages have without them: half of it, and `EXTRA_SHARE` of the
    window, at the most. Nothing where the other half is less than messages need."""
    return min(int(window * EXTRA_SHARE), room // 2) if room >= 2 * LEAST else 0


def too_small(model: str, window: int, *, output: int, fixed: int) -> WindowTooSmall:
    """What is raised where the budget is below `LEAST`: it says what takes the room."""
    reserve = reply_reserve(window, output=output, fixed=fixed)
    needed = f"{_tokens(fixed)} of prompt and tools, {reserve:,} of reply"
    return WindowTooSmall(model=model, window=_tokens(window), needed=needed)


def _free(window: int) -> int:
    return int(window * (1 - SAFETY))


def _tokens(count: int) -> str:
    return f"{count:,} token{'' if count == 1 else 's'}"
