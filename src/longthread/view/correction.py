"""Corrects a model's estimates by the usage that its provider reports."""

from __future__ import annotations

from dataclasses import dataclass

FLOOR = 0.5
"""The least factor. A report below it is about a part of the prompt: it omits cached input, or the prompt was cut."""
CEILING = 3.0
"""A report above this is about another prompt."""
_LEAST = 500
"""Tokens below which the overhead of a prompt dominates."""
_FORGOTTEN = 0.05
"""Share by which a lower report reduces the factor."""
_SUPPORT, _LEARNED, _MARGIN = 3, 0.2, 1.05
"""Lower reports in a row that take the factor below 1, the share by which each of them does, and what stays above
them: another text may cost more."""


@dataclass(frozen=True, slots=True)
class Correction:
    """The `factor` of a model's estimates, and how many reports in a row were `lower`."""

    factor: float = 1.0
    lower: int = 0

    def after(self, estimated: int, reported: int) -> Correction:
        """Return the next correction, from an uncorrected estimate and the provider's count. A higher report counts at
        once, a lower one slowly, and below 1 only if several say so: an estimate that is too low overflows."""
        if estimated < _LEAST or reported <= 0 or (seen := reported / estimated) > CEILING:
            return self
        if seen > self.factor:
            return Correction(seen)
        lower = self.lower + (seen >= FLOOR)
        if lower < _SUPPORT or seen < FLOOR:
            slowly = self.factor + (seen - self.factor) * _FORGOTTEN
            return Correction(max(slowly, min(self.factor, 1.0)), lower)
        target = min(self.factor, seen * _MARGIN)
        return Correction(max(FLOOR, self.factor + (target - self.factor) * _LEARNED), lower)

    def raised(self, by: float) -> Correction:
        """Return the correction of a model that counted more than fits, and did not say how much."""
        return Correction(min(CEILING, self.factor * by))
