"""The page in Debian's Chromium, from a real server on a real store. Only the model is scripted."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import serve  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[2]
SHELL, CHROMIUM = Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium")
"""The same browser without its own windows, and with them: to open and close one of those takes more than a test."""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SHOTS = ROOT / ".screenshots"
"""Kept by CI, ignored by Git."""
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
WATCH = """document.addEventListener('securitypolicyviolation', (event) =>
    console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`))"""
STILL = """(name) => {
    if (window.still?.name !== name) window.still = { name, frames: 0 };
    const moves = document.getAnimations().some((each) => each.playState === 'running');
    window.still.frames = moves ? 0 : window.still.frames + 1;
    return window.still.frames > 4;
}"""
"""Whether nothing has moved for some frames: what fades in begins to a frame or two after it is there."""

OpenPage = Callable[..., Any]


@pytest.fixture
def backend() -> str:
    """The page knows the API alone, and that is tested on every backend."""
    return "sqlite"


@pytest.fixture(scope="session")
def built() -> None:
    """What is served must be what is in `web/`."""
    spec = importlib.util.spec_from_file_location("build_page", ROOT / "web" / "build.py")
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    assert build.is_built(), "the page is not built from what is in web/: run `make page`"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, without windows if that package is there. In CI either must be.

    Playwright's loop runs in this thread while it is open, so no module may use both this and asyncio.
    """
    found = next((each for each in (SHELL, CHROMIUM) if each.exists()), None)
    if found is None:
        message = f"{SHELL} is missing: apt-get install chromium-headless-shell"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(found), headless=True, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def context(built: None, browser: Any) -> Iterator[Any]:
    """One person's browser, for tabs that share a connection; what a page of it complains about fails the test."""
    opened = browser.new_context(locale="en", viewport={"width": 1280, "height": 800}, service_workers="block")
    opened.set_default_timeout(60_000)
    complaints: list[str] = []
    opened.on("weberror", lambda error: complaints.append(str(error.error)))
    opened.on("console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None)
    yield opened
    opened.close()
    assert complaints == []


@pytest.fixture
def open_page(built: None, browser: Any) -> Iterator[OpenPage]:
    """Opens pages: `open_page(running, path, width=390, locale="zh-CN", …)`. Whatever a page complains about fails the
    test, also what its policy forbids, and each request to another host. `quiet=False` allows errors of the console.
    Service workers are blocked, since what they answer cannot be routed: `service_workers="allow"`."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def open_(running: Any, path: str = "/", *, width: int = 1280, quiet: bool = True, **options: Any) -> Any:
        given = {"locale": "en", "viewport": {"width": width, "height": 800}, "has_touch": width < 760}
        given |= {"service_workers": "block"}
        context = browser.new_context(**(given | options))
        context.set_default_timeout(60_000)
        context.add_init_script(WATCH)
        contexts.append(context)
        page = context.new_page()

        def heard(said: Any) -> None:
            if said.type == "error" and (quiet or said.text.startswith("policy:")):
                complaints.append(said.text)

        def asked(request: Any) -> None:
            if not request.url.startswith((running.url, "blob:", "data:")):
                complaints.append(f"another host: {request.url}")

        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", heard)
        page.on("request", asked)
        page.goto(running.url + path)
        page.wait_for_selector("main")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def looked_at(page: Any, name: str) -> None:
    """Keep a picture, and let axe-core find what keeps people from using what is shown."""
    SHOTS.mkdir(exist_ok=True)
    page.wait_for_function(STILL, arg=name)
    page.screenshot(path=SHOTS / f"{name}.png")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate(
        """(options) => axe.run(document, options).then(({ violations }) => violations.map(
            (each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 200)).join(' | ')}`))""",
        {"runOnly": RULES, "resultTypes": ["violations"]},  # what passes takes as long to tell, and nobody reads it
    )
    assert found == [], name
