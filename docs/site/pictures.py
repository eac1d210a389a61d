"""Makes the pictures of the documentation from the running product: `python docs/site/pictures.py`, which
`make screenshots` does.

The demo answers real questions on a new store. A picture that looks as it did before stays as it is, since a
duration of 8 ms instead of 7 ms is no news.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = [Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium")]
FLAGS = ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none", "--disable-background-networking"]
FONTS = {"system-ui": "Inter", "sans": "Inter", "sans-serif": "Inter", "ui-monospace": "JetBrains Mono"}
"""What stands for the fonts of a reader's system."""
COLOURS = 128
LIMIT = 1_500_000
"""Bytes of all pictures together: each clone has them."""
_SETTLED = 700
"""Milliseconds in which what moves comes to rest."""
SAME = 0.03
"""The share of pixels that may differ in a picture that looks as it did before."""


@dataclass(frozen=True)
class Words:
    """What is asked in a language, and what the page calls what is clicked."""

    locale: str
    folder: Path
    earlier: tuple[str, ...]
    question: str
    further: tuple[str, ...]
    copy: str
    inspector: str


ENGLISH = Words(
    locale="en",
    folder=ROOT / "docs/images",
    earlier=(
        "What is the average payload mass per rocket?",
        "How many launches failed per year since 2015?",
        "Which agency launched most often?",
        "How many launches per country and year since 2015?",
    ),
    question="How many launches were there per year?",
    further=("only since 2015", "by country"),
    copy="Copy",
    inspector="Inspector",
)
CHINESE = Words(
    locale="zh-CN",
    folder=ROOT / "docs/zh/images",
    earlier=("各火箭的平均载荷质量", "哪个机构发射最多？", "运载火箭有哪些？", "2015年以来各国家每年的发射次数"),
    question="每年发射了多少次？",
    further=("只看2015年以后的", "按国家"),
    copy="复制",
    inspector="检查器",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = next((str(each) for each in BROWSERS if each.exists()), None)
        if path is None:
            sys.exit("Chromium is missing: apt-get install chromium-headless-shell")
        fonts = {"FONTCONFIG_FILE": str(write_fonts(Path(folder)))}
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, env={**os.environ, **fonts})
        for words in (ENGLISH, CHINESE):
            with serve_demo(Path(folder) / words.locale) as address:
                Photographer(browser, address, words).take_all()
        browser.close()
    total = sum(each.stat().st_size for words in (ENGLISH, CHINESE) for each in words.folder.iterdir())
    print(f"{total / 1e6:.2f} MB of pictures")
    if total > LIMIT:
        sys.exit(f"That is more than {LIMIT / 1e6} MB: take fewer pictures, or smaller ones.")


def write_fonts(folder: Path) -> Path:
    """Write which fonts the browser takes, so that the pictures look alike on each machine."""
    for name in (*FONTS.values(), "Noto Sans CJK SC"):
        found = subprocess.run(["fc-list", name], capture_output=True, text=True, check=True).stdout
        if not found:
            sys.exit(f"{name} is missing: apt-get install fonts-inter fonts-jetbrains-mono fonts-noto-cjk")
    aliases = "".join(
        f'<match target="pattern"><test name="family"><string>{generic}</string></test>'
        f'<edit name="family" mode="prepend" binding="strong"><string>{name}</string></edit></match>'
        for generic, name in FONTS.items()
    )
    file = folder / "fonts.conf"
    file.write_text(f"<fontconfig><include>/etc/fonts/fonts.conf</include>{aliases}</fontconfig>")
    return file


@contextmanager
def serve_demo(folder: Path) -> Iterator[str]:
    """Start `longthread demo` on a new store, and yield its address."""
    command = [Path(sys.executable).with_name("longthread"), "demo", "--port", "0", "--database", f"{folder}.db"]
    environment = {**os.environ, "LONGTHREAD_DATA_DIR": str(folder), "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        found = (re.search(r"http://\S+", line) for line in server.stdout)
        yield next(each[0] for each in found if each)
    finally:
        server.terminate()
        server.wait()


class Photographer:
    """Asks the demo in one language, and takes the pictures of its answers."""

    def __init__(self, browser: Any, address: str, words: Words) -> None:
        self._browser, self._address, self._words = browser, address, words

    def take_all(self) -> None:
        tab = self._open(width=960, height=800, scale=1)
        for question in self._words.earlier:
            tab.goto(self._address)
            self._ask(tab, question)
        lines = tab.url
        tab.goto(self._address)
        self._keep_film("question-to-answer", self._film(tab))
        conversation = tab.url
        for scheme in ("light", "dark"):
            self._shoot(f"page-{scheme}", conversation, scheme=scheme)
        self._shoot("phone", conversation, width=390, height=844, scheme="dark")
        self._shoot("result-card", lines, part="[data-query]")
        for question in self._words.further:
            self._ask(tab, question)
        tab.context.close()
        self._shoot_receipt(conversation)
        self._shoot("inspector", conversation, self._open_inspector, width=1440)

    def _shoot(
        self, name: str, address: str, stage: Callable[[Any], None] | None = None, *, part: str = "", **window: Any
    ) -> None:
        """Take a picture of a conversation, or of a part of it, once `stage` has clicked what the picture shows."""
        tab = self._open(address, **window)
        self._wait_for_answer(tab)
        if stage is None:
            tab.mouse.move(200, 300)
            tab.mouse.wheel(0, -9000)
            tab.mouse.move(0, 0)
        else:
            stage(tab)
        tab.wait_for_timeout(_SETTLED)
        self._keep(name, (tab.locator(part).first if part else tab).screenshot())
        tab.context.close()

    def _shoot_receipt(self, conversation: str) -> None:
        """Take a picture of the last answer, with what the page shows about one of its numbers."""
        tab = self._open(conversation, height=1000)
        self._wait_for_answer(tab)
        tab.locator("article").last.get_by_role("button", name=re.compile("^333")).hover()
        tab.wait_for_timeout(_SETTLED)
        answer = tab.locator("[data-answer]").last.bounding_box()
        clip = {"x": answer["x"] - 24, "y": answer["y"] - 176, "width": answer["width"] + 48, "height": 610}
        self._keep("receipt", tab.screenshot(clip=clip))
        tab.context.close()

    def _open_inspector(self, tab: Any) -> None:
        tab.get_by_role("button", name=self._words.inspector).click()
        tab.wait_for_timeout(_SETTLED)
        tab.locator("aside [aria-expanded=false]").last.click()
        tab.mouse.move(600, 400)
        tab.mouse.wheel(0, 9000)
        tab.mouse.move(0, 0)

    def _open(
        self, address: str = "", *, width: int = 1280, height: int = 860, scale: int = 2, scheme: str = "light"
    ) -> Any:
        context = self._browser.new_context(
            locale=self._words.locale,
            viewport={"width": width, "height": height},
            device_scale_factor=scale,
            color_scheme=scheme,
            has_touch=width < 760,
            service_workers="block",
        )
        tab = context.new_page()
        tab.goto(address or self._address)
        tab.wait_for_selector("#question")
        return tab

    def _ask(self, tab: Any, question: str) -> None:
        tab.fill("#question", question)
        tab.press("#question", "Enter")
        self._wait_for_answer(tab)

    def _wait_for_answer(self, tab: Any) -> None:
        copy = tab.get_by_role("button", name=self._words.copy, exact=True)
        tab.locator("article:has([data-answer])").filter(has=copy).last.wait_for()
        tab.wait_for_function("() => !document.querySelector('[data-undrawn]')")
        tab.wait_for_timeout(_SETTLED)

    def _film(self, tab: Any) -> list[tuple[Image.Image, int]]:
        """A question, its answer, the steps to it and the receipt of a number: pictures, each with its milliseconds."""
        frames: list[tuple[Image.Image, int]] = []

        def shoot(milliseconds: int) -> None:
            frames.append((Image.open(BytesIO(tab.screenshot())).convert("RGB"), milliseconds))

        tab.wait_for_timeout(_SETTLED)
        shoot(900)
        question = self._words.question
        for end in range(len(question) // 8, len(question), len(question) // 8):
            tab.fill("#question", question[:end])
            shoot(90)
        tab.fill("#question", question)
        shoot(600)
        tab.press("#question", "Enter")
        self._wait_for_answer(tab)
        shoot(2500)
        tab.locator("article [aria-expanded=false]").first.click()
        tab.wait_for_timeout(_SETTLED)
        shoot(2500)
        tab.locator("article [aria-expanded=true]").first.click()
        tab.locator("[data-answer] button").nth(3).hover()
        tab.wait_for_timeout(_SETTLED)
        shoot(2500)
        tab.locator("[data-query]").get_by_role("tab").last.click()
        tab.wait_for_timeout(_SETTLED)
        shoot(2500)
        return frames

    def _keep_film(self, name: str, frames: list[tuple[Image.Image, int]]) -> None:
        """Write an animated picture, unless the one that is there ends alike."""
        file = self._words.folder / f"{name}.webp"
        first, *others = [image for image, _ in frames]
        if file.exists():
            before = Image.open(file)
            before.seek(before.n_frames - 1)
            if before.n_frames == len(frames) and look_alike(before.convert("RGB"), others[-1]):
                return
        durations = [milliseconds for _, milliseconds in frames]
        first.save(file, save_all=True, append_images=others, duration=durations, loop=0, lossless=True, method=6)

    def _keep(self, name: str, picture: bytes) -> None:
        """Write a picture with few colours, unless the one that is there looks the same."""
        file = self._words.folder / f"{name}.png"
        image = Image.open(BytesIO(picture)).convert("RGB")
        reduced = image.quantize(COLOURS, dither=Image.Dither.NONE)
        if file.exists() and look_alike(Image.open(file).convert("RGB"), reduced.convert("RGB")):
            return
        reduced.save(file, optimize=True)


def look_alike(one: Image.Image, other: Image.Image) -> bool:
    if one.size != other.size:
        return False
    differing = ImageChops.difference(one, other).convert("L").point(lambda value: 255 if value > 32 else 0)
    return differing.histogram()[255] <= SAME * one.width * one.height


if __name__ == "__main__":
    main()
