"""What is measured of the page in a browser: how it opens, how it scrolls, and how a key shows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WATCH = """
    window.longTasks = [];
    new PerformanceObserver((list) => list.getEntries().forEach((each) => longTasks.push(each.duration)))
        .observe({ type: 'longtask', buffered: true });
"""
DRAWN = """(mark) => new Promise((done) => {
    const look = () => {
        const last = [...document.querySelectorAll('[data-answer]')].at(-1);
        const box = document.querySelector('[aria-label=Conversation]');
        const isShown = last?.textContent.includes(mark) && box.scrollHeight - box.scrollTop - box.clientHeight < 24;
        if (isShown) setTimeout(() => done(performance.now()));
        else requestAnimationFrame(look);
    };
    look();
})"""
"""Resolves with the milliseconds since the page was asked for, when the newest answer is drawn at the end."""
SCROLL = """([distance, step]) => new Promise((done) => {
    const box = document.querySelector('[aria-label=Conversation]');
    const until = performance.now() + 60000;
    let [left, most, last] = [distance, 0, performance.now()];
    const frames = [];
    const next = (now) => {
        frames.push(now - last);
        last = now;
        most = Math.max(most, document.querySelectorAll('*').length);
        if (left <= 0 || performance.now() > until) return done({ frames, nodes: most });
        const before = box.scrollTop;
        box.scrollTop = Math.max(0, before - step);
        left -= before - box.scrollTop;
        requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
})"""
"""Scrolls up by so many pixels, some in each frame."""
TYPED = """
    window.shown = [];
    document.addEventListener('keydown', (event) => {
        requestAnimationFrame(() => { const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => shown.push(performance.now() - event.timeStamp); port2.postMessage(0); });
    }, true);
"""
"""Notes how long after a key the frame with it was drawn."""


@dataclass(frozen=True)
class Tab:
    """A tab with the conversation, and a session with its debugger."""

    page: Any
    session: Any

    def computed_ms(self) -> float:
        """What the page's thread has computed so far."""
        found = {each["name"]: each["value"] for each in self.session.send("Performance.getMetrics")["metrics"]}
        return float(found["TaskDuration"]) * 1000

    def long_tasks(self) -> list[float]:
        """Milliseconds of the tasks over 50 ms since this was last asked."""
        self.page.wait_for_timeout(100)  # the browser tells of them later
        found: list[float] = self.page.evaluate("longTasks.splice(0)")
        return found


def new_tab(context: Any) -> Tab:
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.add_init_script(WATCH)
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return Tab(page, session)


def opened(tab: Tab, url: str, mark: str) -> dict[str, float]:
    """Open a conversation; `mark` stands in its newest answer."""
    tab.page.goto(url, wait_until="commit")
    ms = tab.page.evaluate(DRAWN, mark)
    computed = tab.computed_ms()
    requests = tab.page.evaluate("performance.getEntriesByType('resource').length")
    return {"ms": ms, "computed_ms": computed, "requests": requests}


def scrolled(tab: Tab, distance: int, step: int) -> dict[str, float]:
    """Scroll up from the end."""
    tab.long_tasks()
    before = tab.computed_ms()
    found = tab.page.evaluate(SCROLL, [distance, step])
    computed = tab.computed_ms() - before
    tasks = tab.long_tasks()
    return {
        "scroll_longest_task_ms": max(tasks, default=0),
        "scroll_long_tasks": len(tasks),
        "scroll_longest_frame_ms": max(found["frames"]),
        "scroll_computed_ms_per_frame": computed / len(found["frames"]),
        "nodes": found["nodes"],
    }


def typed(tab: Tab, keys: int, pause_ms: int) -> dict[str, float]:
    """Type into the composer while an answer streams."""
    tab.page.evaluate(TYPED)
    tab.page.focus("#question")
    tab.long_tasks()
    before = tab.computed_ms()
    started = tab.page.evaluate("performance.now()")
    for number in range(keys):
        tab.page.keyboard.press("abcdefghij"[number % 10])
        tab.page.wait_for_timeout(pause_ms)
    passed = tab.page.evaluate("performance.now()") - started
    computed = tab.computed_ms() - before
    shown: Sequence[float] = tab.page.evaluate("shown.splice(0)")
    return {
        "key_median_ms": statistics.median(shown),
        "key_worst_ms": max(shown),
        "stream_longest_task_ms": max(tab.long_tasks(), default=0),
        "stream_computed_percent": 100 * computed / passed,
    }
