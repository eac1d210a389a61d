"""`longthread gateway` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from longthread.testing import ProviderEmulator, ProviderRules

SAID = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "You said: one"}]


@pytest.mark.parametrize("keep", ["all", "nothing"])
def test_it_says_what_happened_when_it_stops(warmed: Path, tmp_path: Path, keep: str) -> None:
    rules = ProviderRules(signatures=True, binding=True)
    with ProviderEmulator(None, rules=rules) as provider:
        own = ["--port", "0", "--anthropic-url", provider.anthropic_url, "--keep", keep]
        command = [str(warmed / "longthread"), "gateway", "--database", str(tmp_path / "here.db"), *own]
        given = os.environ | {"LONGTHREAD_DATA_DIR": str(tmp_path)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=given) as process:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            url = next(line.split()[-1] for line in lines if "gateway is at" in line)
            assert httpx.get(f"{url}/ready").json() == httpx.get(f"{url}/health").json() == {"status": "ready"}
            twice = httpx.post(f"{url}/v1/v1/messages", json={})
            assert (twice.status_code, "without /v1" in twice.text) == (404, True)
            for messages in (SAID[:1], [*SAID, {"role": "user", "content": "two"}]):
                body = {"model": "claude-opus-5", "max_tokens": 500, "thinking": {"type": "adaptive"}}
                answer = httpx.post(f"{url}/v1/messages", json=body | {"messages": messages})
                assert answer.status_code == 200
            process.send_signal(signal.SIGTERM)
            last = list(lines)[-1]
    restored = 1 if keep == "all" else 0
    assert last == f"Stopped after 2 requests: {restored} restored, 0 repaired, 0 not kept.\n"
    assert process.returncode == 0


@pytest.mark.parametrize("url", ["foo", "ftp://x", "http://u:p@host", "http://host:99999"])
def test_a_wrong_url_is_refused_at_once(warmed: Path, tmp_path: Path, url: str) -> None:
    command = [str(warmed / "longthread"), "gateway", "--database", str(tmp_path / "here.db"), "--openai-url", url]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "--openai-url takes an http:// or https:// URL without a password" in told.stderr
    assert "u:p" not in told.stderr
    assert not (tmp_path / "here.db").exists()
