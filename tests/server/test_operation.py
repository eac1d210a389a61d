"""What whoever runs the server needs: readiness, metrics, logs without contents, and the doctor's look at it."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from longthread import metrics
from longthread.cli.commands.doctor import server_findings
from longthread.errors import SqlRefused, StoreError, StoreFull
from longthread.runs.services.runs import Runs
from longthread.server.app import JsonFormatter
from longthread.store.maintenance.space import WriteCheck

SECRET = "Wernher's payroll"
SCRIPT = [{"thought": "Look.", "action": "list_tables"}, {"finish": f"{SECRET} is 7."}]


def test_a_server_is_ready_only_when_it_is_warm(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = threading.Event()
    made = Runs.make_model

    def slow(runs: Runs) -> None:
        assert loaded.wait(30)
        made(runs)

    monkeypatch.setattr(Runs, "make_model", slow)
    running = serve(SCRIPT)
    client = running.client
    assert client.get("/health").status_code == 200
    cold = client.get("/ready")
    assert (cold.status_code, cold.json()) == (503, {"status": "warming"})
    loaded.set()
    warm = running.ready()
    assert (warm.status_code, warm.json()) == (200, {"status": "ready"})


def test_a_server_whose_store_takes_no_writes_is_not_ready(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    running = serve(SCRIPT)
    assert running.ready().status_code == 200
    running.stop()
    shut = serve(SCRIPT, read_only=True).ready()
    assert (shut.status_code, shut.json()["status"]) == (503, "read_only")
    assert "LONGTHREAD_READ_ONLY" in shut.json()["detail"]

    async def full(self: WriteCheck) -> StoreError:
        return StoreFull(reason="no space is left.")

    monkeypatch.setattr(WriteCheck, "_problem", full)
    full_one = serve(SCRIPT).ready()
    assert (full_one.status_code, full_one.json()["status"]) == (503, "unwritable")
    assert "no space is left" in full_one.json()["detail"]


@pytest.mark.one_backend
def test_a_source_that_does_not_open_keeps_no_server_from_being_ready(serve: Any) -> None:
    assert serve(SCRIPT, source="nowhere.sqlite").ready().status_code == 200


def test_metrics_count_without_a_word_of_what_was_said(serve: Any) -> None:
    running = serve(SCRIPT)

    def found() -> dict[str, float]:
        lines = running.client.get("/metrics").text.splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    before = found()
    asked = running.answer(f"What is {SECRET}?", model="demo", thread_id=SECRET)
    after, text = found(), running.client.get("/metrics").text

    def more(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    events = "/api/conversations/{thread_id}/runs/{run_id}/events"
    assert more('longthread_http_requests_total{method="POST",route="/api/chat",status="202"}') == 1
    assert more(f'longthread_http_requests_total{{method="GET",route="{events}",status="200"}}') == 1
    assert more('longthread_model_calls_total{outcome="ok"}') == 2
    assert more('longthread_tokens_total{direction="output"}') > 0
    assert more('longthread_store_seconds_count{kind="write"}') > 0
    assert more('longthread_views_total{how="planned"}') + more('longthread_views_total{how="grown"}') == 2
    assert more('longthread_view_tokens_total{stage="before"}') > 0
    assert more('longthread_view_tokens_total{stage="after"}') > 0
    assert more('longthread_view_messages_total{how="whole"}') >= 2
    assert {"longthread_summaries_total", "longthread_pruned_messages_total"} <= {*re.findall(r"# TYPE (\w+)", text)}
    assert after["longthread_workers"] >= 1
    while found()["longthread_live_runs"]:
        pass
    ended = 'longthread_run_seconds_count{status="finished"}'
    assert found()[ended] - before.get(ended, 0) == 1
    assert SECRET not in text and asked["run_id"] not in text
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) .+|longthread_\w+(\{(\w+="[^"\\]*",?)+\})? [-+.\de]+', line), line


def test_a_histogram_counts_up_to_each_bound() -> None:
    timer = metrics.Timer("test_seconds", "A test's.")
    try:
        for seconds in (0.001, 0.002, 99.0):
            timer.note(seconds=seconds)
        lines = dict(line.rsplit(" ", 1) for line in "".join(timer.lines()).splitlines() if line[0] != "#")
    finally:
        metrics._METRICS.remove(timer)
    assert [lines[f'test_seconds_bucket{{le="{most}"}}'] for most in ("0.001", "0.0025", "30.0", "+Inf")] == [*"1223"]
    assert (lines["test_seconds_count"], float(lines["test_seconds_sum"])) == ("3", 99.003)


def logged(text: str, *values: Any, **more: Any) -> dict[str, Any]:
    """A line of the log, for a record with these values."""
    record = logging.getLogger("longthread.test").makeRecord("longthread.test", 30, "f", 1, text, values, **more)
    found: dict[str, Any] = json.loads(JsonFormatter().format(record))
    return found


def test_a_line_of_the_log_has_numbers_and_ids_but_no_contents() -> None:
    run = "01a218b8-cf37-777f-bcf3-a273c8daf203"
    error = SqlRefused(reason=f"no such column: {SECRET}")
    line = logged("Run %s did not end after %d s: %s (%s)", run, 3, error, SECRET, exc_info=None)
    assert line["event"] == f"Run {run} did not end after 3 s: SqlRefused (…)"
    assert (line["level"], line["logger"]) == ("warning", "longthread.test")
    assert logged("%d rows", SECRET, exc_info=None)["event"] == "%d rows"


def test_a_failure_is_logged_with_its_place_and_without_its_message() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        line = logged("It failed", exc_info=sys.exc_info())
    assert line["error"] == "ValueError"
    assert line["at"][0].endswith("test_a_failure_is_logged_with_its_place_and_without_its_message")
    assert SECRET not in json.dumps(line)


def test_a_request_is_logged_with_its_ids(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    running = serve(SCRIPT)
    with caplog.at_level(logging.INFO, "longthread.server.requests"):
        asked = running.answer(f"What is {SECRET}?")
        running.stop()
    lines = [json.loads(JsonFormatter().format(each)) for each in caplog.records if each.name.endswith("requests")]
    [streamed] = [each for each in lines if each.get("run_id")]
    assert (streamed["thread_id"], streamed["run_id"]) == (asked["thread_id"], asked["run_id"])
    assert (streamed["method"], streamed["status"]) == ("GET", 200)
    assert SECRET not in json.dumps(lines)


def test_a_run_is_logged_when_it_begins_and_ends(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    running = serve(SCRIPT)
    with caplog.at_level(logging.INFO, "longthread.runs.execute"):
        asked = running.answer(f"What is {SECRET}?")
        running.stop()
    lines = [json.loads(JsonFormatter().format(each)) for each in caplog.records if each.name.endswith("execute")]
    assert [line["event"] for line in lines] == ["run begins", "run ends"]
    assert {(line["thread_id"], line["run_id"]) for line in lines} == {(asked["thread_id"], asked["run_id"])}
    assert (lines[0]["attempt"], lines[1]["status"]) == (1, "finished")
    assert lines[1]["ms"] > 0
    assert (lines[1]["views"], lines[1]["messages_left_out"]) == (2, 0)
    assert lines[1]["tokens_after"] >= lines[1]["tokens_before"] > 0
    assert SECRET not in json.dumps(lines)


async def test_the_doctor_looks_at_a_server(serve: Any) -> None:
    running = serve(SCRIPT)
    running.ready()
    found = [finding async for finding in server_findings(running.url)]
    assert all(good for good, _, _ in found), found
    assert [what for _, what, _ in found] == ["server", "clock", "ready", "load", "streams"]


@pytest.mark.one_backend
async def test_the_doctor_finds_a_proxy_that_buffers(serve: Any, buffering: Any) -> None:
    running = serve(SCRIPT)
    running.ready()
    found = {what: (good, text) async for good, what, text in server_findings(buffering(running.url))}
    good, text = found["streams"]
    assert not good and "proxy_buffering off" in text
    assert found["server"][0]


async def test_the_doctor_finds_no_server() -> None:
    [(good, what, text)] = [finding async for finding in server_findings("http://127.0.0.1:9")]
    assert (good, what) == (False, "server") and "does not answer" in text


@pytest.fixture
def buffering() -> Iterator[Any]:
    """Starts a proxy that hands an answer on when it is whole."""
    started: list[ThreadingHTTPServer] = []

    def start(upstream: str) -> str:
        class Proxy(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = httpx.get(upstream + self.path, trust_env=False)
                self.send_response(answer.status_code)
                self.send_header("Content-Type", answer.headers["content-type"])
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in started:
        server.shutdown()
        server.server_close()
