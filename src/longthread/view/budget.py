"""How many tokens the messages of one model call may have."""

from __future__ import annotations

from longthread.errors import WindowTooSmall

SAFETY = 0.10
"""The part of the window that is left free, for what an estimate misses (document 004 §4.1)."""
LEAST = 256
"""Tokens that the messages need at the least: with fewer, not even a question and one result can be shown."""


def message_budget(window: int, *, output: int, fixed: int) -> int:
    """The window less safety, the reserve for the output and what is fixed: system prompt and tools.

    All are tokens. An output reserve above a quarter of the window counts as a quarter: it would leave no room. A
    result below `LEAST` says that the window is too small.
    """
    return int(window * (1 - SAFETY)) - _reserve(window, output) - fixed


def too_small(model: str, window: int, *, output: int, fixed: int) -> WindowTooSmall:
    """What is raised where the budget is below `LEAST`: it says what takes the room."""
    needed = f"{_tokens(fixed)} of prompt and tools, {_reserve(window, output):,} of reply"
    return WindowTooSmall(model=model, window=_tokens(window), needed=needed)


def _reserve(window: int, output: int) -> int:
    return min(output, window // 4)


def _tokens(count: int) -> str:
    return f"{count:,} token{'' if count == 1 else 's'}"
