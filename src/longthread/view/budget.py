"""The token budget of a model call's messages, and the correction of estimates by the provider's counts."""

from __future__ import annotations

from longthread.errors import WindowTooSmall

SAFETY = 0.10
"""Share of the window left free for estimation errors (document 004 §4.1)."""
LEAST = 256
"""The least tokens for messages: a question and one result."""
USUAL_LEAST = 1_024
"""Tokens for messages before the reply and the tools' descriptions have all of theirs, in at most a quarter of the
window: a question, its tables' columns, a statement and a result."""
LARGE_WINDOW, LARGE_REPLY = 64_000, 16_000
"""Tokens of a window from which on more is reserved for the reply, and the most of that (document 004 §4.1)."""
LEAST_REPLY = 256
"""The least tokens for the reply."""
EXTRA_SHARE = 0.3
"""Share of the window for optional extras, such as known facts."""
FLOOR = 1.0
"""Estimates are only raised: a report may omit cached input, and a refused call costs more than a smaller view."""
CEILING = 3.0
"""A report above this is about another prompt."""
_LEAST_PROMPT = 500
"""Tokens below which the overhead of a prompt dominates."""
_FORGOTTEN = 0.05
"""Share by which a lower report reduces the factor."""


def least_of(window: int) -> int:
    """Tokens that messages have in a window before others have all of theirs; in a small one fewer than in others."""
    return max(LEAST, min(USUAL_LEAST, window // 4))


def message_budget(window: int, *, output: int, fixed: int, least: int | None = None) -> int:
    """The window without safety share, reply reserve and `fixed` tokens. Below `LEAST` the window is too small."""
    return free_tokens(window) - fixed - reply_reserve(window, output=output, fixed=fixed, least=least)


def reply_reserve(window: int, *, output: int, fixed: int, least: int | None = None) -> int:
    """Tokens for the reply: `output`, or in a large window an eighth of it, up to `LARGE_REPLY`, if that is more; at
    most a quarter of the window. Less, down to `LEAST_REPLY`, if the messages would have less than `least`."""
    large = min(LARGE_REPLY, window // 8) if window >= LARGE_WINDOW else 0
    usual = min(max(output, large), window // 4)
    least = least_of(window) if least is None else least
    return max(min(usual, free_tokens(window) - fixed - least), min(usual, LEAST_REPLY))


def extra_budget(window: int, room: int) -> int:
    """Tokens for known facts: at most half of the messages' `room` and `EXTRA_SHARE` of the window; none if the
    messages would have too little."""
    return min(int(window * EXTRA_SHARE), room // 2) if room >= 2 * LEAST else 0


def too_small(model: str, window: int, *, output: int, fixed: int) -> WindowTooSmall:
    """The error for a budget below `LEAST`."""
    reserve = reply_reserve(window, output=output, fixed=fixed)
    needed = f"{_tokens(fixed)} of prompt and tools, {reserve:,} of reply"
    return WindowTooSmall(model=model, window=_tokens(window), needed=needed)


def free_tokens(window: int) -> int:
    """The window without the share for errors of the estimate."""
    return int(window * (1 - SAFETY))


def _tokens(count: int) -> str:
    return f"{count:,} token{'' if count == 1 else 's'}"


def correct_factor(factor: float, estimated: int, reported: int) -> float:
    """The next factor for a model's estimates, from the present `factor` (at first 1.0), an uncorrected estimate and
    the provider's count. A higher report counts at once, a lower one slowly."""
    if estimated < _LEAST_PROMPT or reported <= 0:
        return factor
    seen = reported / estimated
    if seen > CEILING:
        return factor
    after = seen if seen > factor else factor + (seen - factor) * _FORGOTTEN
    return max(FLOOR, after)
