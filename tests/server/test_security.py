"""Who may call, from where, and how much."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from longthread.server.requests import is_loopback

pytestmark = pytest.mark.one_backend

SCRIPT = [{"finish": "Yes."}]
QUESTION = {"question": "Is it?"}
FORWARDED = {"X-Forwarded-For": "198.51.100.9"}


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8765", "LOCALHOST", "10.1.2.3:80", "localhost."])
def test_names_of_this_server_are_known(serve: Any, host: str) -> None:
    assert serve(SCRIPT).client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example"]
)
def test_a_rebound_name_is_refused(serve: Any, host: str) -> None:
    answer = serve(SCRIPT).client.get("/api/conversations", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "unknown_host")


def test_a_configured_name_is_known(serve: Any) -> None:
    running = serve(SCRIPT, host="data.example")
    assert running.client.get("/health", headers={"Host": "data.example:8765"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_sites_pages_change_nothing(serve: Any, headers: dict[str, str]) -> None:
    running = serve(SCRIPT)
    thread = running.answer("Is it?")["thread_id"]
    for method, path in [
        ("POST", "/api/chat"),
        ("DELETE", f"/api/conversations/{thread}"),
        ("PATCH", f"/api/conversations/{thread}"),
        ("POST", f"/api/conversations/{thread}/stop"),
    ]:
        answer = running.client.request(method, path, headers=headers, json=QUESTION | {"label": "x"})
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_origin")
    assert len(running.client.get("/api/conversations").json()["conversations"]) == 1


def test_our_own_page_and_programs_may(serve: Any) -> None:
    running = serve(SCRIPT)
    for headers in ({"Origin": running.url}, {"Sec-Fetch-Site": "same-origin"}, {}):
        assert running.client.post("/api/chat", json=QUESTION, headers=headers).status_code == 202


def test_no_other_origin_may_read(serve: Any) -> None:
    running = serve(SCRIPT)
    answer = running.client.get("/api/conversations", headers={"Origin": "http://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_beyond_the_limit_is_refused(serve: Any, chunked: bool) -> None:
    running = serve(SCRIPT, max_question=1000)
    body = b'{"question": "' + b"x" * 200_000 + b'"}'
    content = iter([body[:100_000], body[100_000:]]) if chunked else body
    answer = running.client.post("/api/chat", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == (400 if chunked else 413)
    assert answer.headers["content-type"] == "application/problem+json"
    assert running.client.get("/api/conversations").json()["conversations"] == []


def test_a_question_of_a_megabyte_is_asked(serve: Any) -> None:
    running = serve(SCRIPT)
    asked = running.answer("火" * 350_000)
    assert len(running.history(asked["thread_id"])["messages"][0]["content"]) == 350_000


def test_an_answer_that_is_no_page_may_load_nothing(serve: Any) -> None:
    running = serve(SCRIPT)
    answer = running.client.get("/api/info")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; base-uri 'none';")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_sources_are_the_users_own_on_loopback_and_the_operators_beyond(serve: Any, tmp_path: Path) -> None:
    secret = str(tmp_path / "secret.sqlite")
    here, beyond = serve(SCRIPT), serve(SCRIPT, data_dir=tmp_path / "other", no_login=True)
    beyond.client.headers.update(FORWARDED)
    body = {**QUESTION, "source": secret}
    assert here.client.post("/api/chat", json=body).json()["code"] == "source_not_found"
    refused = beyond.client.post("/api/chat", json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "source_not_allowed")
    thread = beyond.answer("Is it?")["thread_id"]
    again = beyond.client.post(f"/api/conversations/{thread}/resume", json={"source": secret})
    assert again.status_code == 403
    assert beyond.client.post("/api/chat", json={**QUESTION, "thread_id": thread, "source": "demo"}).status_code == 202
    info = beyond.client.get("/api/info").json()
    assert (info["sources"], info["database"]) == (["demo"], None)


def test_models_are_the_users_own_on_loopback_and_the_configured_ones_beyond(serve: Any, tmp_path: Path) -> None:
    own = {"model": "openai:small", "fallback_model": "openai:big", "openai_api_key": "sk-own-0815"}
    here, beyond = serve(SCRIPT, **own), serve(SCRIPT, data_dir=tmp_path / "other", no_login=True, **own)
    beyond.client.headers.update(FORWARDED)
    assert here.answer("Is it?", model="vllm:any")["run_id"]
    thread = beyond.answer("Is it?", model="openai:big")["thread_id"]
    question = beyond.history(thread)["messages"][0]["id"]
    at = f"/api/conversations/{thread}"
    ag_ui = {"threadId": "t2", "runId": "r2", "messages": [{"id": "m", "role": "user", "content": "Is it?"}]}
    ag_ui |= {"tools": [], "context": [], "state": {}, "forwardedProps": {"model": "openai:dear"}}
    for path, body in (
        ("/api/chat", {**QUESTION, "model": "llamacpp:any"}),
        ("/api/chat", {**QUESTION, "model": "vllm:any"}),
        ("/api/chat", {**QUESTION, "model": "openai:dear"}),
        (f"{at}/resume", {"model": "vllm:any"}),
        (f"{at}/messages/{question}/again", {"model": "ollama:any"}),
        (f"{at}/messages/{question}/edit", {"question": "Is it not?", "model": "anthropic:any"}),
        ("/ag-ui/analyst", ag_ui),
    ):
        refused = beyond.client.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "model_not_allowed"), (path, refused.text)
        assert "demo, openai:big, openai:small" in refused.json()["detail"]
    assert len(beyond.client.get("/api/conversations").json()["conversations"]) == 2


@pytest.mark.parametrize("headers", [{}, FORWARDED])
def test_the_password_of_the_operators_source_is_told_to_nobody(serve: Any, headers: dict[str, str]) -> None:
    running = serve(SCRIPT, source="postgresql://ada:geheim@127.0.0.1:9/shop", no_login=True)
    running.client.headers.update(headers)
    info = running.client.get("/api/info")
    assert info.json()["source"] == "postgresql://ada:***@127.0.0.1:9/shop"
    for source in (None, info.json()["source"], "postgresql://ada:geheim@127.0.0.1:9/shop"):
        answer = running.client.post("/api/chat", json={**QUESTION, "source": source})
        assert answer.json()["code"] == "source_unreachable"  # it was tried
        assert "geheim" not in answer.text
    other = running.client.post("/api/chat", json={**QUESTION, "source": "postgresql://eve:anders@127.0.0.1:9/x"})
    assert other.status_code != 202
    assert "geheim" not in other.text + info.text
    assert "anders" not in other.text


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "::ffff:127.0.0.1", "localhost")],
        *[(host, False) for host in ("0.0.0.0", "::", "::ffff:10.0.0.1", "example.org", socket.gethostname())],
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
