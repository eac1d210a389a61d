"""How many random examples a test has."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = "thorough"
"""The profile of Hypothesis that `-m slow` loads."""
SHARE = 4
"""Without it, tests have one of so many of their examples."""


def examples(most: int) -> int:
    """Return how many examples a test has that has `most` with `-m slow`."""
    return most if is_thorough() else max(10, most // SHARE)


def is_thorough() -> bool:
    return bool(settings.get_current_profile_name() == THOROUGH)
