"""Values as a browser reads them: out of the JSON of a conversation, and of a chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.awkward import DUCKDB

pytestmark = pytest.mark.one_backend

_COLUMNS = ", ".join(f"{value.sql} AS c{at}" for at, value in enumerate(DUCKDB))
_SUMS = (
    "SELECT TIMESTAMPTZ '2020-01-01 00:00:00+00' AS at, 9007199254740993 AS total "
    "UNION ALL SELECT 'infinity', 2 ORDER BY 1"
)


def test_a_browser_reads_what_the_database_holds(serve: Any, tmp_path: Path) -> None:
    path = tmp_path / "values.duckdb"
    duckdb.connect(str(path)).execute("CREATE TABLE t (a INTEGER)").close()
    script = [
        {"action": "run_sql", "args": {"sql": f"SELECT {_COLUMNS}"}},
        {"action": "run_sql", "args": {"sql": _SUMS}},
        {"action": "chart", "args": {"mark": "line", "x": "at", "y": "total"}},
        {"finish": "See [q2]."},
    ]
    running = serve(script, source=str(path))
    asked = running.answer("What is there?")
    values, sums, chart = running.history(asked["thread_id"])["steps"][asked["run_id"]]
    assert values["observation"]["data"]["rows"] == [[value.cell for value in DUCKDB]]
    assert [row[1] for row in sums["observation"]["data"]["rows"]] == ["9007199254740993", "2"]
    drawn = running.client.get(f"/api/conversations/{asked['thread_id']}/steps/{chart['step']}/chart").json()
    assert {channel: one["type"] for channel, one in drawn["encoding"].items()} == {
        "x": "temporal",
        "y": "quantitative",
    }
    assert drawn["data"]["values"] == [
        {"at": "2020-01-01T00:00:00+00:00", "total": 9007199254740992},
        {"at": None, "total": 2},
    ]
