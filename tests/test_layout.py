"""Folders stay small enough to be read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 30
"""Modules of one folder, beside its `__init__.py`."""


def test_no_folder_has_more_modules_than_a_reader_can_look_through() -> None:
    counted: dict[str, int] = {}
    for top in ("src/longthread", "tests", "benchmarks"):
        for module in (ROOT / top).rglob("*.py"):
            if module.name != "__init__.py":
                folder = str(module.parent.relative_to(ROOT))
                counted[folder] = counted.get(folder, 0) + 1
    assert counted["src/longthread/runs"] > 10
    assert {folder: count for folder, count in counted.items() if count > MOST} == {}
