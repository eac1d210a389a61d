"""How the page is served: its policy, its files, its size, and a checkout without it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longthread.server import page

SCRIPT = 230 * 1024
STYLE = 15 * 1024


@pytest.fixture
def html(built: None) -> str:
    return (page.FOLDER / "index.html").read_text("utf-8")


def test_each_answer_has_a_nonce_of_its_own_and_no_other_style_or_script(serve: Any, built: None) -> None:
    running = serve(["x"])
    nonces = []
    for path in (
        "/",
        "/c/a%2Fb",
        "/c/..%2F..",
        "/s/token",
        "/settings",
        "/settings/usage",
        "/boards",
        "/b/x",
        "/projects",
        "/p/x",
    ):
        answer = running.client.get(path)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache"), path
        policy = answer.headers["content-security-policy"]
        found = re.search(r"style-src 'self' 'nonce-([\w-]{22})'", policy)
        assert found is not None and "script-src 'self';" in policy and "unsafe" not in policy, policy
        assert f'nonce="{found[1]}"' in answer.text and page.PLACEHOLDER not in answer.text
        assert not re.search(r"<script(?![^>]* src=)|<style|https?:", answer.text)
        assert ('<meta name="robots" content="noindex" />' in answer.text) == path.startswith("/s/")
        assert answer.headers["referrer-policy"] == "no-referrer"
        nonces.append(found[1])
    assert len(set(nonces)) == len(nonces)


def test_the_page_can_be_looked_for_without_being_sent(serve: Any, built: None) -> None:
    running = serve(["x"])
    head, whole = running.client.head("/"), running.client.get("/")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.content))
    assert head.headers["content-security-policy"]


def test_files_are_compressed_before_and_kept_for_ever(serve: Any, html: str) -> None:
    running = serve(["x"])
    for path in loaded(html):
        plain = running.client.get(f"/{path}", headers={"Accept-Encoding": "identity"})
        packed = running.client.get(f"/{path}", headers={"Accept-Encoding": "gzip"})
        assert "immutable" in plain.headers["cache-control"]
        assert (packed.headers["content-encoding"], "content-encoding" in plain.headers) == ("gzip", False)
        assert packed.content == plain.content == (page.FOLDER / path).read_bytes()
    assert running.client.get("/icon.svg").headers["content-type"] == "image/svg+xml"
    assert running.client.get("/early.js").headers["cache-control"] == "no-cache"
    assert running.client.get("/assets/..%2F..%2Fapp.py").status_code == 404


def test_what_is_loaded_first_is_small(html: str) -> None:
    """Of a conversation with a result, which is the most."""
    thread = re.findall(r"/(assets/\S+\.(?:js|css))", re.findall(r'data-thread="([^"]*)"', html)[0])
    files = [*loaded(html), *thread]
    # One language is loaded with it.
    scripts = [*(each for each in files if each.endswith(".js")), max(languages(), key=packed_size)]
    styles = [each for each in files if each.endswith(".css")]
    assert len(list(languages())) == 2
    assert any("conversation" in each for each in thread)
    assert sum(map(packed_size, scripts)) <= SCRIPT, {path: packed_size(path) for path in scripts}
    assert sum(map(packed_size, styles)) <= STYLE, {path: packed_size(path) for path in styles}


def test_a_checkout_without_the_page_says_what_to_run(
    serve: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(page, "FOLDER", tmp_path)
    answer = serve(["x"]).client.get("/")
    assert (answer.status_code, answer.text) == (503, page.UNBUILT)
    assert "make page" in answer.text


def loaded(html: str, kind: str = "js|css") -> list[str]:
    """The built files that the page names."""
    found: list[str] = re.findall(rf'(?:src|href)="/(assets/[^"]+\.(?:{kind}))"', html)
    return found


def languages() -> Iterator[str]:
    return (f"assets/{path.name}" for path in (page.FOLDER / "assets").glob("*.js") if re.match("(en|zh)-", path.name))


def packed_size(path: str) -> int:
    packed = (page.FOLDER / f"{path}.gz").read_bytes()
    assert gzip.decompress(packed) == (page.FOLDER / path).read_bytes()
    return len(packed)
