"""The page on a long conversation: how soon it opens, how smoothly it scrolls, how soon a key shows beside a stream.

    python benchmarks/page.py                 # 5,000 messages, each thing five times: four minutes
    python benchmarks/page.py --quick --json  # each thing twice, 90 s; the last line sums it up

A real `longthread serve` on SQLite, Debian's Chromium without a window, and the emulator's lean mode as the provider.
Times are the browser's. Beside them stands what the page's thread computed: other work on the machine does not change
that. The page is what `make page` built.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from agent import make_source
from playwright.sync_api import sync_playwright
from processes import Server, started
from seeding import seed

from longthread.model.entry import Draft, ToolCall
from longthread.model.ids import new_id
from longthread.store.open import open_store

EMULATOR = (sys.executable, "-m", "longthread_testing.emulator", "--lean")
COMMAND = "from longthread.cli.start import main; main()"
SQL = "SELECT name, n, share FROM t"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium-headless-shell"
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
NEWEST = "lean-40x0"
MARK = "word39"
"""Stands in the answer of the newest turn."""
STREAM = "lean-4000x5"
"""200 pieces of text a second."""
STREAMS = "() => /word9\\b/.test([...document.querySelectorAll('[data-answer]')].at(-1).textContent)"
STEP = 400
"""Pixels that are scrolled in a frame."""
GOALS = {"open_cold_ms": 1000, "open_again_ms": 1000, "scroll_longest_task_ms": 50, "nodes": 2500, "key_worst_ms": 50}
"""The most that each may be."""
WORST = ("scroll_longest_task_ms", "scroll_longest_frame_ms", "nodes", "key_worst_ms")
"""Of them the largest is told, of the others the median."""
Row = dict[str, Any]


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


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    messages: int
    runs: int
    """Newest turns that are runs with a result."""
    rounds: int
    distance: int
    """Pixels that are scrolled over."""
    keys: int


FULL = Sizes(messages=5_000, runs=40, rounds=5, distance=200_000, keys=100)
QUICK = Sizes(messages=5_000, runs=40, rounds=2, distance=100_000, keys=50)
TINY = Sizes(messages=60, runs=2, rounds=1, distance=2_000, keys=3)


def turn(number: int) -> list[Draft]:
    """A question and an answer, of several heights; before each third answer stands a query."""
    question = f"Question {number}: how many orders are there, and where? " * (number % 3 + 1)
    rows = [[f"name {n}", number * 1000 + n * 37, n / 7] for n in range(number % 12 + 1)]
    return [
        Draft(new_id(), "user", question),
        *_query(number, rows),
        Draft(new_id(), "assistant", _answer(number, rows)),
    ]


def _answer(number: int, rows: list[list[Any]]) -> str:
    counts = [f"In region {n} there were **{number * 31 + n * 7}** orders, says q1." for n in range(number % 9)]
    lines = [f"| {name} | {count} | {share:.2f} |" for name, count, share in rows]
    table = "\n".join(["| name | n | share |", "|---|--:|--:|", *lines])
    return f"Answer {number}. {' '.join(counts)}\n\n- one item\n- another with *emphasis*\n\n{table}\n"


def _query(number: int, rows: list[list[Any]]) -> list[Draft]:
    if number % 3:
        return []
    call = ToolCall(f"call_{number}", "run_sql", {"sql": SQL})
    data = {"query": "q1", "sql": SQL, "columns": ["name", "n", "share"], "rows": rows, "row_count": len(rows)}
    found = json.dumps({"ok": True, "data": data})
    return [
        Draft(new_id(), "assistant", "", tool_calls=[call]),
        Draft(new_id(), "tool", found, tool_call_id=call.id, name=call.name),
    ]


async def make_thread(address: str, sizes: Sizes, source: str) -> str:
    async with open_store(address) as store:
        drafts = [draft for number in range(sizes.messages // 2 - sizes.runs) for draft in turn(number)]
        return await seed(store, drafts, source=source)


def ask(url: str, thread: str, model: str) -> None:
    """Ask, and wait until the run has ended."""
    asked = begin(url, thread, model)
    httpx.get(url + asked["events"], timeout=60, trust_env=False).raise_for_status()


def begin(url: str, thread: str | None, model: str) -> dict[str, str]:
    question = {"question": "Which names have the largest shares?", "model": f"openai:{model}"}
    answer = httpx.post(f"{url}/api/chat", json=question | ({"thread_id": thread} if thread else {}), trust_env=False)
    answer.raise_for_status()
    found: dict[str, str] = answer.json()
    return found


@contextmanager
def served(folder: Path, sizes: Sizes) -> Iterator[tuple[Server, str]]:
    """A server with the conversation, and the conversation's id."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LONGTHREAD_", "LLM_"))}
    source = str(make_source(folder))
    address = str(folder / "conversations.db")
    with ExitStack() as stack:
        emulator = stack.enter_context(started(EMULATOR, env | {"HOME": str(folder)}))
        own = {"HOME": str(folder), "LLM_BASE_URL": f"{emulator.url}/v1", "LONGTHREAD_MODEL": "openai:lean-1x0"}
        thread = asyncio.run(make_thread(address, sizes, source))
        command = [sys.executable, "-c", COMMAND, "serve", "--port", "0", "--source", source, "--database", address]
        server = stack.enter_context(started(command, env | own, says="Longthread is at"))
        for _ in range(sizes.runs):
            ask(server.url, thread, NEWEST)
        yield server, thread


@dataclass(frozen=True)
class Bench:
    """What is measured, and in what."""

    browser: Any
    server: Server
    thread: str
    sizes: Sizes

    @property
    def url(self) -> str:
        return f"{self.server.url}/c/{self.thread}"

    def round(self) -> Iterator[Row]:
        """Each thing once, in a browser that has nothing of the page yet."""
        context = self.browser.new_context(locale="en", viewport={"width": 1280, "height": 800})
        yield self.open(new_tab(context), "cold")
        tab = new_tab(context)
        yield self.open(tab, "again")
        yield scrolled(tab, self.sizes.distance, STEP)
        tab.page.close()
        yield self.keys(new_tab(context))
        context.close()

    def open(self, tab: Tab, kind: str) -> Row:
        before = self.server.tree_cpu()
        found = opened(tab, self.url, MARK)
        found["server_cpu_ms"] = (self.server.tree_cpu() - before) * 1000
        return {f"open_{kind}_{name}": value for name, value in found.items()}

    def keys(self, tab: Tab) -> Row:
        """Type while an answer streams into the conversation."""
        opened(tab, self.url, MARK)
        asked = begin(self.server.url, self.thread, STREAM)
        tab.page.wait_for_function(STREAMS)
        found = typed(tab, self.sizes.keys, 100)
        httpx.post(f"{self.server.url}/api/conversations/{self.thread}/stop", trust_env=False).raise_for_status()
        httpx.get(self.server.url + asked["events"], timeout=60, trust_env=False)
        ask(self.server.url, self.thread, NEWEST)
        return found


def measure(bench: Bench, tell: Callable[[Row], None]) -> Row:
    """Measure everything; return the last line: of each number the median, or the worst."""
    rows: list[Row] = []
    for _ in range(bench.sizes.rounds):
        for row in bench.round():
            rows.append({name: round(value, 1) for name, value in row.items()})
            tell(rows[-1])
    names = dict.fromkeys(name for row in rows for name in row)
    values = {name: [row[name] for row in rows if name in row] for name in names}
    last = {name: max(of) if name in WORST else round(statistics.median(of), 1) for name, of in values.items()}
    tell({"goals": GOALS, "missed": [name for name, most in GOALS.items() if last[name] > most]})
    return last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true")
    size.add_argument("--tiny", action="store_true", help="only to see that everything runs: its numbers say nothing")
    parser.add_argument("--json", action="store_true", help="JSON lines alone")
    args = parser.parse_args()
    sizes = TINY if args.tiny else QUICK if args.quick else FULL

    def tell(row: Mapping[str, Any]) -> None:
        print(json.dumps(row) if args.json else "  ".join(f"{name} {value}" for name, value in row.items()), flush=True)

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench")))
        server, thread = stack.enter_context(served(folder, sizes))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(FLAGS))
        stack.callback(browser.close)
        last = measure(Bench(browser, server, thread, sizes), tell)
    print(json.dumps(last))


if __name__ == "__main__":
    main()
