"""Identifiers."""

from __future__ import annotations

import re
import time

import pytest

from longthread.model.ids import local_id, short_id


def test_short_ids_sort_by_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for moment in (1.0, 1e9, 1.7e9, 1.7e9 + 0.001, 4e9):
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        made.append(short_id())
    assert made == sorted(made)
    assert len(set(made)) == 5
    assert all(re.fullmatch("[0-9a-v]{16}", each) for each in made)


def test_local_ids_differ() -> None:
    made = {local_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(re.fullmatch("[0-9a-v]{10}", each) for each in made)
