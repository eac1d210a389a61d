"""LangGraph's own server, `langgraph dev` as it is, with our saver and store: it raises where its loop is blocked.

It takes half a minute to start: `pytest -m slow tests/langgraph/server/test_server.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from longthread.errors import ThreadNotFound
from longthread.store import log
from longthread.store.open import open_store

pytestmark = pytest.mark.slow
APP = Path(__file__).parent / "app.py"


@contextmanager
def served(folder: Path, address: str, saver: str) -> Iterator[httpx.Client]:
    """Run `langgraph dev` without `--allow-blocking`."""
    shutil.copy(APP, folder / "app.py")
    config = {
        "dependencies": ["."],
        "graphs": {"agent": "./app.py:agent"},
        "checkpointer": {"path": f"./app.py:{saver}"},
        "store": {"path": "./app.py:items"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config), "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {"SERVED_DATABASE": address, "LANGSMITH_TRACING": "false", "LANGGRAPH_NO_VERSION_CHECK": "true"}
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    with (folder / "said.txt").open("wb") as said:
        server = subprocess.Popen(command, cwd=folder, env={**os.environ, **own}, stdout=said, stderr=said)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            while not _answers(client):
                assert server.poll() is None, (folder / "said.txt").read_text("utf-8")
                time.sleep(0.2)
            yield client
    finally:
        server.terminate()
        server.wait()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/ok", timeout=1).is_success
    except httpx.TransportError:
        return False


def _run(client: httpx.Client, thread: str, text: str, **more: Any) -> list[dict[str, Any]]:
    asked = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": text}]}, **more}
    reply = client.post(f"/threads/{thread}/runs/wait", json=asked)
    assert reply.is_success, reply.text
    messages: list[dict[str, Any]] = reply.json()["messages"]
    return messages


async def _entries(address: str, thread: str) -> int:
    async with open_store(address) as store, store.reading() as tx:
        try:
            return (await log.find_thread(tx, thread, user_id="default")).entry_count
        except ThreadNotFound:
            return 0


@pytest.mark.parametrize("saver", ["saver", "plainly_opened"])
def test_langgraph_dev_runs_on_a_saver_and_a_store(tmp_path: Path, store_address: str, saver: str) -> None:
    with served(tmp_path, store_address, saver) as client:
        thread = client.post("/threads", json={}).json()["thread_id"]
        _run(client, thread, "The plane is called 信天翁, says Ada. " + "word " * 300)
        for number in range(6):
            last = _run(client, thread, f"question {number} " + "word " * 300)
            assert last[-1]["content"].startswith(f"You said: question {number}")
        assert len(last) < 14, "the state stays short: what is summarised has left it"
        assert "信天翁" in _run(client, thread, "recall 信天翁 plane")[-1]["content"]
        assert "noodles" in _run(client, thread, "note Ada likes noodles")[-1]["content"]
        found = client.post("/store/items/search", json={"namespace_prefix": ["notes"]}).json()
        assert [item["value"] for item in found["items"]] == [{"text": "Ada likes noodles"}]

        history = client.post(f"/threads/{thread}/history", json={"limit": 100}).json()
        end = next(each for each in history if not each["next"] and len(each["values"]["messages"]) == 4)
        at = {"checkpoint": {"checkpoint_id": end["checkpoint"]["checkpoint_id"], "checkpoint_ns": ""}}
        forked = _run(client, thread, "a fork", **at)
        assert [each["content"][:10] for each in forked[-2:]] == ["a fork", "You said: "]

        copy = client.post(f"/threads/{thread}/copy").json()["thread_id"]
        assert client.delete(f"/threads/{thread}").is_success
        assert client.get(f"/threads/{copy}/state").json()["values"]["messages"] == forked
    assert asyncio.run(_entries(store_address, thread)) == 0
    assert asyncio.run(_entries(store_address, copy)) > 18
    said = (tmp_path / "said.txt").read_text("utf-8")
    assert "Blocking call" not in said
    assert "Traceback" not in said
