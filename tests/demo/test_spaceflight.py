from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from longthread_demo import spaceflight


def _dump(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(connection.iterdump())


def test_the_same_seed_makes_the_same_rows(tmp_path: Path) -> None:
    first = spaceflight.spaceflight_database(tmp_path / "a")
    second = spaceflight.spaceflight_database(tmp_path / "b")
    other = spaceflight.spaceflight_database(tmp_path / "c", seed=2)
    assert first.name == second.name != other.name
    assert _dump(first) == _dump(second) != _dump(other)


def test_changed_rows_need_a_changed_version(tmp_path: Path) -> None:
    """The file is found by a hash of what it is made from; whoever changes how it is made raises the version."""
    digest = hashlib.sha256(_dump(spaceflight.spaceflight_database(tmp_path)).encode()).hexdigest()[:12]
    assert (spaceflight._VERSION, digest) == (2, "b8c79c72c459")


def test_it_is_made_once_and_whole(tmp_path: Path) -> None:
    path = spaceflight.spaceflight_database(tmp_path)
    made = path.stat().st_mtime_ns
    assert spaceflight.spaceflight_database(tmp_path).stat().st_mtime_ns == made
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_processes_may_make_it_at_once(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from longthread_demo.spaceflight import spaceflight_database; "
        "spaceflight_database(pathlib.Path(sys.argv[1]))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) == 1


def test_its_rows_hang_together(tmp_path: Path) -> None:
    with closing(sqlite3.connect(spaceflight.spaceflight_database(tmp_path))) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        total = sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
        assert 4_500 <= total <= 5_500
        assert set(tables) == {"agencies", "sites", "rockets", "missions", "launches", "payloads"}
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        years = connection.execute("SELECT min(launch_date), max(launch_date) FROM launches").fetchone()
        assert years[0] >= "1990" and years[1] < "2026"
        early = connection.execute(
            "SELECT count(*) FROM launches l JOIN rockets r ON r.id = l.rocket_id "
            "WHERE CAST(substr(l.launch_date, 1, 4) AS INTEGER) < r.first_flight"
        )
        assert early.fetchone() == (0,)
        heavy = connection.execute(
            "SELECT count(*) FROM launches l JOIN rockets r ON r.id = l.rocket_id WHERE r.leo_capacity_kg < "
            "(SELECT sum(mass_kg) FROM payloads p WHERE p.launch_id = l.id)"
        )
        assert heavy.fetchone() == (0,)
        outcomes = dict(connection.execute("SELECT outcome, count(*) FROM launches GROUP BY 1").fetchall())
        assert set(outcomes) == {"Success", "Failure", "Partial failure"}
        assert outcomes["Success"] > 20 * outcomes["Failure"]
        names = dict(connection.execute("SELECT name, name_zh FROM rockets").fetchall())
        assert names["Long March 5"] == "长征五号"
        assert names["Falcon 9"] == "猎鹰9号"
