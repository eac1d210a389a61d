"""The README that a package index shows leads to the repository, or nowhere."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://code.example/longthread/blob/main"


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module with what runs when a package is built."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def targets(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", text)


def test_links_and_pictures_lead_to_the_repository(hooks: Any) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    shown = targets(hooks.lead_to_repository(text, REPOSITORY))
    assert len(shown) == len(targets(text)) > 30
    assert [each for each in shown if not each.startswith("https://")] == []
    assert f"{REPOSITORY}/docs/guide/runs.md" in shown
    assert f"{REPOSITORY}/docs/images/page-light.png?raw=true" in shown


def test_links_are_text_while_no_host_has_the_repository(hooks: Any) -> None:
    text = "See [the **guide**](docs/a.md#b), ![A picture](docs/a.png)[LangGraph](https://x.example) and [below](#c)."
    assert hooks.lead_to_repository(text, "") == "See the **guide**, [LangGraph](https://x.example) and [below](#c)."


def test_the_package_has_this_readme(hooks: Any) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "readme" in project["dynamic"]
    metadata: dict[str, Any] = {}
    hooks.ReadmeHook(str(ROOT), {}).update(metadata)
    assert metadata["readme"]["content-type"] == "text/markdown"
    assert metadata["readme"]["text"].startswith("# Longthread\n")
    assert [each for each in targets(metadata["readme"]["text"]) if "://" not in each] == []


def test_the_other_packages_readmes_have_no_relative_links() -> None:
    pages = [*ROOT.glob("packages/*/README.md")]
    assert len(pages) == 2
    assert [each for page in pages for each in targets(page.read_text("utf-8")) if "://" not in each] == []
