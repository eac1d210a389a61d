"""A reply that was interrupted: its entry holds the text that the user saw."""

from __future__ import annotations

from longthread.model.language import is_chinese

INTERRUPTED = "interrupted"
"""The kind of the entry."""
_MARKS = {
    False: "[Interrupted here. Asked to go on, continue from this point.]",
    True: "[回复在此中断。若要求继续，请从这里接着写。]",
}


def with_mark(text: str) -> str:
    """The text as a model sees it: that its end is no end."""
    return f"{text.rstrip()}\n\n{_MARKS[is_chinese(text)]}"
