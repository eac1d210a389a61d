"""When two texts are the same SQL statement, and what a failed one needs."""

from __future__ import annotations

import re

CORRECT = "Send the corrected SQL."
"""Ends the message to a model about a failure that another statement may not have."""
_EXACT = re.compile(
    r"'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|`[^`]*(?:`|\Z)|(?<!\w)\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)|"
    r"--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z)",
    re.S,
)
"""Literals, quoted names and comments. A doubled quote begins the next one."""
_DOUBTFUL = ("\\", "#")
"""Characters that some dialects take as an escape and a comment, and others do not."""
_END = "; \t\r\n"


def statement_form(sql: str, *, folds: bool = True) -> str:
    """Return a form that equal statements share: blanks and the end do not count, nor does case if the dialect `folds`
    names. Literals, quoted names and comments must be equal; if it is in doubt where they end, all must."""
    text = sql.strip().rstrip(_END)
    if any(sign in text for sign in _DOUBTFUL):
        return text
    parts: list[str] = []
    at = 0
    for exact in _EXACT.finditer(text):
        parts += [_loose(text[at : exact.start()], folds=folds), exact[0]]
        at = exact.end()
    return "".join([*parts, _loose(text[at:], folds=folds)])


def _loose(text: str, *, folds: bool) -> str:
    blanks = re.sub(r"\s+", " ", text)
    return blanks.lower() if folds else blanks
