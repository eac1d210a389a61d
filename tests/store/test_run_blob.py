"""What an ended run did, as one value: whole again, whichever version wrote it."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest

from longthread.errors import StoreDamaged
from longthread.model.run import Mark, Run, Step
from longthread.store.run_rows import Packed, pack, unpack

BEFORE = "AcOTIIlLOoaoycEQaxrAF60myNFqaRAbiyVucceqEY7IMMUVG9hNwxoRoOyGEgHwzG0OND22FgA="
"""What the version before this one wrote for `PACKED`."""
AT = datetime(2026, 1, 1, tzinfo=UTC)
RUN = Run("t", "r", "finished", "How many?", None, "m", "auto", 12, AT, first_step=3)
PACKED = Packed(
    {"answer": None, "queries": [{"query": "q1", "sql": "SELECT 1", "columns": ["1"], "shown": "1 of 1"}]},
    [Mark(1, "started", 0), Mark(4, "finished", 90)],
    [
        (Step("t", 3, "r", "model", "done", AT, action="run_sql", manifest=[], entry_seq=2), [Mark(2, "thought", 5)]),
        (
            Step("t", 4, "r", "tool", "done", AT, action="run_sql", manifest=[], args={"sql": "SELECT 1"}),
            [Mark(3, "warning", 7)],
        ),
    ],
    [],
)


def test_what_was_packed_is_whole_again() -> None:
    assert unpack(RUN, pack(RUN, PACKED)) == PACKED


def test_what_an_earlier_version_packed_is_read() -> None:
    assert unpack(RUN, base64.b64decode(BEFORE)) == PACKED


@pytest.mark.parametrize("body", [b"", b"\x07abc", b"\x02abc"])
def test_damage_is_told(body: bytes) -> None:
    with pytest.raises(StoreDamaged, match="what run r did on thread t cannot be read"):
        unpack(RUN, body)
