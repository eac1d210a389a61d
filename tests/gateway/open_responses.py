"""What Open Responses says about the form of responses and of their events, by `openresponses-types`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from openresponses_types import types
from pydantic import BaseModel


def _events() -> Mapping[str, type[BaseModel]]:
    found: dict[str, type[BaseModel]] = {}
    for name in dir(types):
        kind = getattr(types, name)
        if name.endswith("StreamingEvent"):
            marks = kind.model_fields["type"].annotation
            assert issubclass(marks, StrEnum)
            found |= dict.fromkeys(marks, kind)
    return found


EVENTS = _events()


def check(response: Mapping[str, Any]) -> types.ResponseResource:
    """Raises ValidationError: it is no response."""
    return types.ResponseResource.model_validate(response)


def check_events(events: Sequence[Mapping[str, Any]]) -> None:
    """Raises AssertionError or ValidationError: they are no stream of a response."""
    for event in events:
        EVENTS[event["type"]].model_validate(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    last = events[-1]
    assert last["type"] == f"response.{last['response']['status']}"
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == last["response"]["output"]
