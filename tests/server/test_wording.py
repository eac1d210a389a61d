"""What clients are told names tools or routes, and no command that they have one for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from longthread.errors import LongthreadError
from longthread.server.problems import error_for_http, for_clients, for_http

pytestmark = pytest.mark.one_backend

OPERATOR = {"prices", "login", "whoami", "apply", "threads export", "db copy", "plugins list"}
"""Commands that are given where the server runs."""
NO_TOOL = {"apply", "approve", "reject", "threads export", "db copy", "plugins list"}
NO_TOOL |= {"users list", "groups list", "keys list", "grants list", "projects list", "prices", "login", "whoami"}
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


def test_every_error_over_http_names_routes_and_fields() -> None:
    told = {each: for_http(" ".join(each.message.split())) for each in classes()}
    found = {
        command
        for said in told.values()
        for command in re.findall(r"`longthread ([a-z]+(?: (?:list|export|copy))?)", said)
    }
    assert found <= OPERATOR
    options = {option for said in told.values() for option in re.findall(r"--[a-z-]+", said)}
    # Those of commands that start the server or open a store.
    assert options <= {"--host", "--port", "--database", "--read-only", "--as", "--replace", "--user", "--local"}


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("`longthread threads list` shows them.", "`GET /api/conversations` shows them."),
        ("Kept; `longthread resume 李` tries again.", "Kept; `POST /api/conversations/李/resume` tries again."),
        ("`longthread resume t --model …` goes on.", "`POST /api/conversations/t/resume` goes on."),
        ("Ask with `longthread ask --thread t`.", "Ask with `POST /api/chat`."),
        ("`longthread sources teach SOURCE` lists them.", "`GET /api/sources/SOURCE/terms` lists them."),
        ("See `longthread approve t`.", "See `POST /api/conversations/t/approvals`."),
        ("Give one with --source, or try `--source demo`.", "Give one with `source`, or try `source` demo."),
        ("Or use `--model demo`, which needs no key.", "Or use `model` demo, which needs no key."),
        ("Try another model, or --protocol json.", "Try another model, or `protocol` json."),
        ("`longthread db upgrade` makes one.", "`longthread db upgrade` makes one."),
    ],
)  # fmt: skip
def test_a_message_is_said_over_http(message: str, told: str) -> None:
    assert for_http(message) == told


def test_the_error_of_a_run_is_said_over_http() -> None:
    error = {
        "type": "model_failed",
        "message": "It failed; `longthread resume t` tries again.",
        "params": {"model": "m"},
    }
    told = error_for_http({"error": error, "usage": {}})
    assert told["error"] == {**error, "message": "It failed; `POST /api/conversations/t/resume` tries again."}
    assert error_for_http({"answer": "`longthread resume t`"}) == {"answer": "`longthread resume t`"}, (
        "what a model says"
    )
