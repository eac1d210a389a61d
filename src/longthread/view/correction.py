"""What a provider's reported usage teaches about the estimates of one model."""

from __future__ import annotations

FLOOR = 1.0
"""An estimate is only ever raised: what a server reports may leave out cached input, and a view that is a little
smaller costs less than a call that is refused."""
CEILING = 3.0
"""Above this, a report is not about the same prompt."""
_LEAST = 500
"""Tokens below which a prompt says nothing of the rate: its overhead is most of it."""
_FORGOTTEN = 0.05
"""The part of a correction that each later report takes back when it asks for less."""


def corrected(factor: float, estimated: int, reported: int) -> float:
    """The factor for the next estimates of a model.

    Args:
        factor: the one so far, 1.0 at first.
        estimated: the estimate of a prompt, before any factor.
        reported: the input tokens that the provider counted in that prompt.

    A report above the factor counts at once, one below it slowly: a call that is refused costs more than a small view.
    """
    if estimated < _LEAST or reported <= 0:
        return factor
    seen = reported / estimated
    if seen > CEILING:
        return factor
    after = seen if seen > factor else factor + (seen - factor) * _FORGOTTEN
    return max(FLOOR, after)
