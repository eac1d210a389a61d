"""Ask over HTTP, follow the run as it happens, edit the question, and find both answers as branches.

    python examples/http_client.py

It starts a server of its own; take the address of yours. The demo model answers: for a real one, start the server
with LONGTHREAD_MODEL and its key.
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import httpx


def follow(client: httpx.Client, asked: httpx.Response) -> str:
    """Print what a run does while it does it, and return its answer. The events are those of AG-UI."""
    with client.stream("GET", asked.raise_for_status().json()["events"], timeout=60) as stream:
        for line in stream.iter_lines():
            if not line.startswith("data: "):
                continue  # `id: ` lines: with the last one as `Last-Event-ID`, a broken stream goes on
            event = json.loads(line.removeprefix("data: "))
            if event["type"] == "TOOL_CALL_START":
                print(f"  {event['toolCallName']} …")
    return event["result"]["answer"].splitlines()[0]


def main(folder: Path) -> None:
    command = ["longthread", "serve", "--port", "0", "--source", "demo", "--model", "demo"]
    command += ["--database", str(folder / "conversations.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+:\d+", line)))
        with httpx.Client(base_url=address) as client:
            asked = client.post("/api/chat", json={"question": "How many rockets are there?"})
            print(follow(client, asked))
            thread = asked.json()["thread_id"]
            question = client.get("/api/chat/history", params={"thread_id": thread}).json()["messages"][0]
            edit = f"/api/conversations/{thread}/messages/{question['id']}/edit"
            print(follow(client, client.post(edit, json={"question": "How many launches are there?"})))
            question = client.get("/api/chat/history", params={"thread_id": thread}).json()["messages"][0]
            print(f"{question['content']} It is one of {len(question['siblings']['ids'])} branches.")
        server.terminate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
