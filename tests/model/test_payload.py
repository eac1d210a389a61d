"""Payloads told in short, and in full again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longthread.model.entry import shorten_fields, whole, whole_payload

NOTE: dict[str, Any] = {"raw": "So: 4.", "latency_ms": 3, "kind": "answer"}
FIELDS: dict[str, Any] = {"additional_kwargs": {"x": [1], "longthread": NOTE}, "response_metadata": {"id": "r"}}


def test_what_is_told_in_short_is_the_same_in_full() -> None:
    short, metadata = shorten_fields(FIELDS, "4.", {"raw": "So: 4.", "kind": "answer"})
    assert short == {
        "": {"n": [[0, ["So: ", ""]], [1, 3]]},
        "additional_kwargs": {"x": [1]},
        "response_metadata": {"id": "r"},
    }
    assert metadata == {"kind": "answer"}
    for given in (metadata, json.dumps(metadata), metadata | {"message_id": "sent"}):
        assert json.dumps(whole(short, "4.", given)) == json.dumps(FIELDS)


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"longthread": "no note"},
        {"longthread": NOTE, "behind": 1},
        {"longthread": {"message_id": "m", "kind": "answer"}},
        {"longthread": {"latency_ms": 2.5, "kind": "answer"}},
    ],
)
def test_a_note_that_the_metadata_is_not_stays_in_the_payload(kwargs: dict[str, Any]) -> None:
    fields = {"additional_kwargs": kwargs}
    assert shorten_fields(fields, "4.", {"kind": "answer"}) == (fields, {"kind": "answer"})


@pytest.mark.parametrize("payload", [None, b"", b"{}", b"\x00json", b'{"":', b'{"":1}', b'{"":{"n":1}}'])
def test_other_payloads_are_as_they_are(payload: bytes | None) -> None:
    assert whole_payload(payload, "text", {"kind": "answer"}) == payload
