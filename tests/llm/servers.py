"""A small server on a socket, with answers by method and path."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class FakeServer:
    """`answers` are by `GET /path`: JSON, bytes as they are, a status, or a function of the request's JSON that gives
    one of these. What it does not have is a 404. `requests` holds each one's line and headers."""

    answers: dict[str, Any]
    port: int = 0
    requests: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> set[str]:
        return {line for line, _ in self.requests}


@contextmanager
def serving(answers: dict[str, Any]) -> Iterator[FakeServer]:
    fake = FakeServer(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            line = f"{self.command} {self.path}"
            fake.requests.append((line, {name.lower(): value for name, value in self.headers.items()}))
            answer = fake.answers.get(line, 404)
            if isinstance(answer, Callable):  # type: ignore[arg-type]
                answer = answer(json.loads(body or b"null"))
            status, answer = (answer, {}) if isinstance(answer, int) else (200, answer)
            status, answer = answer if isinstance(answer, tuple) else (status, answer)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", str(fake.answers["location"]))
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(text: str, prompt_tokens: int) -> dict[str, Any]:
    """A reply of Chat Completions that is not streamed."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 5, "total_tokens": prompt_tokens + 5}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]} | {
        "usage": usage
    }


def ollama(server: FakeServer) -> dict[str, Any]:
    """Return the answers of an Ollama whose model is in memory once it was asked."""

    def answer(_: Any) -> Any:
        server.answers["GET /api/ps"] = {"models": [{"name": "qwen3:4b", "context_length": 8_192}]}
        return completion("ready", 9)

    return {
        "GET /v1/models": {"object": "list", "data": [{"id": "qwen3:4b"}]},
        "GET /api/ps": {"models": []},
        "POST /api/show": {"model_info": {"qwen3.context_length": 40_960}},
        "POST /v1/chat/completions": answer,
    }
