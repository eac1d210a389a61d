"""The site of the documentation builds without a broken link, in both languages, and loads nothing from elsewhere."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILDER = find_spec("zensical") and find_spec("flask_swagger_ui")


class Addresses(HTMLParser):
    """Collects what a browser loads for a page by itself: scripts, styles, fonts, images, frames."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        loads = tag in {"script", "img", "iframe", "source", "video", "audio", "embed"}
        relations = (given.get("rel") or "").split()
        if tag == "link" and not {"canonical", "alternate", "prev", "next", "edit"} & {*relations}:
            self.loaded.append(given.get("href") or "")
        elif loads and given.get("src"):
            self.loaded.append(given["src"] or "")


@pytest.mark.skipif(
    not BUILDER and not os.environ.get("CI"), reason="requirements/docs.txt is not installed: make docs"
)
def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/site/build.py"), str(tmp_path)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def text(page: str) -> str:
        return (tmp_path / page / "index.html").read_text("utf-8")

    assert 'lang="en"' in text("en/latest/guide/sql") and "Who may read what" in text("en/latest/guide/sql")
    assert 'lang="zh"' in text("zh/latest") and "向数据库提问" in text("zh/latest")
    assert 'href="../../../../zh/0.1/reference/commands/"' in text("en/latest/reference/commands")
    assert 'href="../../../../zh/0.1/guide/sql/" hreflang="zh"' in text("en/latest/guide/sql")
    assert '<a href="../../en/0.1/">English</a>' in text("zh/latest")
    assert '<a href="../../zh/0.1/">中文</a>' in text("en/latest")
    assert "longthread threads export" in text("en/latest/reference/commands")
    assert "导出" in text("zh/latest/reference/commands")
    assert "/api/boards/{board_id}/cards" in text("en/latest/reference/http")
    assert 'id="longthread.runs.analyst.Analyst.open"' in text("en/latest/reference/python")
    described = json.loads((tmp_path / "en/latest/reference/viewer/openapi.json").read_text("utf-8"))
    assert "/api/chat" in described["paths"]
    for language in ("en", "zh"):
        assert len(json.loads((tmp_path / language / "latest/search.json").read_text("utf-8"))["items"]) > 5
        assert json.loads((tmp_path / language / "versions.json").read_text("utf-8"))[0]["aliases"] == ["latest"]
    for page in named_pages():
        assert (tmp_path / "en/latest" / page / "index.html").is_file(), page
    assert loaded_from_elsewhere(tmp_path) == []


def named_pages() -> set[str]:
    """The pages that errors and commands send their reader to."""
    calls = (
        node
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "documentation"
    )
    found = {each.value for call in calls for each in call.args if isinstance(each, ast.Constant)}
    assert len(found) > 3
    return {str(each) for each in found}


def loaded_from_elsewhere(site: Path) -> list[str]:
    """What pages and styles load from another host than the site's."""
    found = []
    pages = [*site.rglob("*.html")]
    assert len(pages) > 100
    for page in pages:
        parser = Addresses()
        parser.feed(page.read_text("utf-8"))
        found += [f"{page.relative_to(site)}: {each}" for each in parser.loaded if re.match(r"(https?:)?//", each)]
    for style in site.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", style.read_text("utf-8"))
        found += [f"{style.relative_to(site)}: {each}" for each in addresses]
    return found
