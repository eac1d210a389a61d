"""Corrects a model's estimates by the usage that its provider reports."""

from __future__ import annotations

FLOOR = 1.0
"""Estimates are only raised: a report may omit cached input, and a refused call costs more than a smaller view."""
CEILING = 3.0
"""A report above this is about another prompt."""
_LEAST = 500
"""Tokens below which the overhead of a prompt dominates."""
_FORGOTTEN = 0.05
"""Share by which a lower report reduces the factor."""


def corrected(factor: float, estimated: int, reported: int) -> float:
    """The next factor for a model's estimates, from the present `factor` (at first 1.0), an uncorrected estimate and
    the provider's count. A higher report counts at once, a lower one slowly."""
    if estimated < _LEAST or reported <= 0:
        return factor
    seen = reported / estimated
    if seen > CEILING:
        return factor
    after = seen if seen > factor else factor + (seen - factor) * _FORGOTTEN
    return max(FLOOR, after)
