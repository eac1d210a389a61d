"""The benchmark runs, and its last line holds what it promises. What it measures is no business of a test."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KEYS = {
    "turn_ratio_5000_10",
    "disk_ratio",
    "saver_speedup_1000",
    "bytes_ratio_1000",
    "floor_ratio",
    "short_ratio",
    "tail_ratio",
}


@pytest.mark.slow
@pytest.mark.postgres
def test_the_last_line_has_every_ratio_for_each_backend(postgres_server: str, tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/log.py", "--tiny", "--json", "--plot", plot],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LONGTHREAD_TEST_POSTGRES_URL": postgres_server},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    *rows, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last.keys() == KEYS
    for values in last.values():
        assert values.keys() == {"sqlite", "postgres"}
        assert all(value > 0 for value in values.values())
    savers = {(row["backend"], row["saver"]) for row in rows if row["measured"] == "turn"}
    assert len(savers) == 8
    assert ET.parse(plot).getroot().tag.endswith("svg")


@pytest.mark.slow
@pytest.mark.postgres
def test_the_fan_out_has_a_ratio_for_each_backend_and_call(postgres_server: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/fan_out.py", "--tiny", "--json"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LONGTHREAD_TEST_POSTGRES_URL": postgres_server},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = {(row["backend"], row["call"], row["messages"]) for row in rows}
    assert len(kinds) == len(rows) == 8
    assert all(row["run_ratio"] > 0 and row["state_ratio"] > 0 for row in rows)


GATEWAY_KEYS = (
    *("added_p50_ms", "added_p99_ms", "stream_first_added_p50_ms", "cpu_ms", "rss_mb"),
    *("litellm_added_p50_ms", "litellm_cpu_ms", "litellm_rss_mb", "restored", "rejected_direct"),
    *("stream_cpu_ms", "start_cpu_s", "disk_ratio"),
)


@pytest.mark.slow
def test_the_gateway_restores_what_the_provider_refuses(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/gateway.py", "--tiny", "--json"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    *rows, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert tuple(last) == GATEWAY_KEYS
    assert {row["measured"] for row in rows} == {"load", "gateway", "gateway, streamed", "disk"}
    assert last["restored"] == last["rejected_direct"] == 2
    assert last["litellm_cpu_ms"] is None
    assert last["disk_ratio"] > 0


SERVER_KEYS = (
    *("runs", "lost", "first_event_p95_ms", "kb_per_conversation", "turns_per_s", "cpu_ms_per_turn"),
    *("us_per_chunk", "takeover_p95_s", "reads_per_watcher_s"),
)


@pytest.mark.slow
@pytest.mark.postgres
def test_the_server_loses_no_run(postgres_server: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/server.py", "--tiny", "--json"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LONGTHREAD_TEST_POSTGRES_URL": postgres_server},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    *rows, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert tuple(last) == SERVER_KEYS
    assert (last["runs"], last["lost"]) == (3, 0)
    [goals] = [row for row in rows if row["measured"] == "goals"]
    assert {*goals["goals"]} - {"watched_percent"} < {*last}


@pytest.mark.slow
def test_a_login_has_its_cost_for_each_way(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/access.py", "--tiny", "--json"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    *rows, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last.keys() == {"local_more_ms", "session_more_ms", "key_more_ms", "unknown_name_ratio"}
    assert {row["who"] for row in rows if row["measured"] == "request"} == {"local", "session", "key"}
    assert {row["name"] for row in rows if row["measured"] == "login"} == {"known", "unknown"}
