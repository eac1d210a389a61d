"""A big file that is read in place is looked through once, and again when it has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from longthread.tools.analysis.engines import files
from longthread.tools.analysis.engines.files import FilesEngine
from longthread.tools.analysis.limits import Limits

LIMITS = Limits(loaded_file_mb=1)


def opened(path: Path) -> tuple[list[Any], dict[str, list[str]]]:
    """The first row of the table, and what is told of it."""
    engine = FilesEngine(path, str(path), LIMITS)
    try:
        root: duckdb.DuckDBPyConnection = engine._open()
        first = root.execute("SELECT * FROM big ORDER BY ALL LIMIT 1").fetchall()[0]
        root.close()
        return list(first), dict(engine.table_notes)
    finally:
        engine.close()


def written(path: Path, mark: str) -> Path:
    path.write_text(
        "id,day,code\n" + "".join(f"{n},0{n % 9 + 1}/0{n % 7 + 1}/2021,{mark}{n}\n" for n in range(100_000))
    )
    return path


def test_what_was_found_is_used_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = written(tmp_path / "big.csv", "a")
    looked: list[Path] = []
    monkeypatch.setattr(files, "likely", lambda given, before=files.likely: (looked.append(given), before(given))[1])
    first = opened(path)
    assert first[0] == [0, "01/01/2021", "a0"]
    assert "day" in str(first[1])  # it stays text, and that is told
    assert opened(path) == first
    assert looked == [path]
    written(path, "later ")
    assert opened(path)[0] == [0, "01/01/2021", "later 0"]
    assert looked == [path, path]


def test_what_was_found_in_a_file_is_not_said_of_one_that_took_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = written(tmp_path / "big.csv", "a")
    other = tmp_path / "other.csv"
    other.write_text(path.read_text().replace("/2021", "/2021 or so"))
    read = FilesEngine._text_table

    def take_place(*given: Any, **options: Any) -> Any:
        table = read(*given, **options)
        other.replace(path)
        return table

    with monkeypatch.context() as patch:
        patch.setattr(FilesEngine, "_text_table", take_place)
        opened(path)
    assert opened(path) == ([0, "01/01/2021 or so", "a0"], {})


def test_what_cannot_be_read_back_is_found_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = written(tmp_path / "big.csv", "a")
    first = opened(path)
    [noted] = (tmp_path / "cache").rglob("*.json")
    noted.write_text('{"state": ')
    assert opened(path) == first
