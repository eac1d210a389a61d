"""What a test of the page does in it."""

from __future__ import annotations

import re
from typing import Any


def ask(page: Any, question: str) -> None:
    page.fill("#question", question)
    page.press("#question", "Enter")


def shape(page: Any) -> list[str]:
    """What a conversation shows, without times."""
    page.wait_for_function("() => !document.querySelector('.working')")
    text = page.locator("#thread").inner_text()
    return [line for line in re.sub(r"[\d.]+ m?s\b", "", text).split("\n") if line.strip()]
