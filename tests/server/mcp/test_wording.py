"""What clients are told names tools, and no command that they have a tool for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from longthread.errors import LongthreadError
from longthread.server.mcp.wording import for_clients

pytestmark = pytest.mark.one_backend

NO_TOOL = {"apply", "approve", "reject", "threads export", "db copy"}
"""Commands that a person gives."""


def classes(of: type[LongthreadError] = LongthreadError) -> Iterator[type[LongthreadError]]:
    yield of
    for each in of.__subclasses__():
        yield from classes(each)


def test_every_error_names_tools_where_there_are_some() -> None:
    messages = [" ".join(each.message.split()) for each in classes()]
    assert sum("`longthread" in each for each in messages) > 5
    told = [for_clients(each) for each in messages]
    commands = {found for each in told for found in re.findall(r"`longthread ([a-z]+(?: (?:list|export|copy))?)", each)}
    assert commands <= NO_TOOL


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("None. `longthread threads list` shows them.", "None. The tool `list_threads` shows them."),
        ("It is kept; `longthread resume 李` tries again.", "It is kept; the tool `resume` tries again."),
        ("See `longthread approve t`.", "See `longthread approve t`."),
        ("Give one with --source, or try --source demo.", "Give one with `source`, or try `source` demo."),
        ("Start it with --any-source.", "Start it with --any-source."),
    ],
)  # fmt: skip
def test_a_message_is_said_to_clients(message: str, told: str) -> None:
    assert for_clients(message) == told
