"""The guides say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from longthread import testing
from longthread.llm.json_protocol import Malformed, parse_reply
from longthread.settings import variables

DOCS = Path(__file__).parents[2] / "docs"


def _blocks(page: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize(
    "source", _blocks("how-to/testing.md", "python"), ids=["model", "behind", "provider", "rules", "backend", "crashes"]
)
def test_the_examples_run(source: str) -> None:
    exec(compile(source, "docs/how-to/testing.md", "exec"), {})


def test_the_guide_names_every_public_name_of_the_kit() -> None:
    text = (DOCS / "how-to/testing.md").read_text(encoding="utf-8")
    assert [name for name in testing.__all__ if name not in text] == ["ModelCall", "RecordedRequest"]


def test_the_table_of_settings_is_complete_and_in_order() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ((?:`[A-Z_]+`(?:, )?)+) \|", (DOCS / "reference/models.md").read_text("utf-8"), re.MULTILINE
    )
    documented = {field: tuple(re.findall(r"`([A-Z_]+)`", names)) for field, names in rows}
    assert documented == variables()


def test_the_documented_replies_are_read() -> None:
    replies = _blocks("reference/models.md", "json")
    assert len(replies) == 2
    assert not [reply for reply in replies if isinstance(parse_reply(reply, strict=True), Malformed)]
