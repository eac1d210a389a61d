"""Folders stay small enough to be read, and a name leads to one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 30
"""Modules of one folder, beside its `__init__.py`."""


def test_no_folder_has_more_modules_than_a_reader_can_look_through() -> None:
    counted: dict[str, int] = {}
    for top in ("src/longthread", "packages", "evals", "tests", "benchmarks"):
        for module in (ROOT / top).rglob("*.py"):
            if module.name != "__init__.py":
                folder = str(module.parent.relative_to(ROOT))
                counted[folder] = counted.get(folder, 0) + 1
    assert counted["src/longthread/runs"] > 10
    assert {folder: count for folder, count in counted.items() if count > MOST} == {}


def test_files_that_pin_packages_hold_no_addresses() -> None:
    """Each machine has its own registry. `npm run lock` leaves out the addresses of who would like money, too."""
    files = [ROOT / "web/package-lock.json", *(ROOT / "requirements").glob("*.txt")]
    assert len(files) > 2
    assert [file.name for file in files if "://" in file.read_text("utf-8")] == []


def test_no_two_public_classes_have_one_name() -> None:
    """Aliases of types count too: both are what a reader searches for."""
    places: dict[str, list[str]] = {}
    for sources in ("src", "evals/src", "packages/*/src"):
        for module in sorted(ROOT.glob(f"{sources}/**/*.py")):
            for name in _types_of(module):
                places.setdefault(name, []).append(str(module.relative_to(ROOT)))
    assert len(places) > 400
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def _types_of(module: Path) -> Iterator[str]:
    """The public classes of a module, and the names in CamelCase that it gives to types."""
    for node in ast.parse(module.read_text("utf-8")).body:
        names: list[str] = []
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            targets = (target.id for target in node.targets if isinstance(target, ast.Name))
            names = [name for name in targets if name[0].isupper() and not name.isupper() and "_" not in name]
        yield from (name for name in names if not name.startswith("_"))
