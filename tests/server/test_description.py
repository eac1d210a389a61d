"""The OpenAPI description, and requests of kinds that no route takes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server import described

pytestmark = pytest.mark.one_backend

LONE = rb'{"question": "?", "thread_id": "\ud800"}'
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "code"),
    [
        ("POST", "/api/chat", {"content": b'{"question": ', "headers": JSON}, 400, ""),
        ("POST", "/api/chat", {"content": b'"\xff"', "headers": JSON}, 400, ""),
        ("POST", "/api/chat", {"content": b"[" * 99_999, "headers": JSON}, 400, ""),
        ("POST", "/api/chat", {"content": b"question"}, 422, "invalid_input"),
        ("POST", "/api/chat", {"data": {"question": "?"}}, 415, "unsupported_media_type"),
        ("POST", "/api/chat", {"content": rb'{"question": "\ud800"}', "headers": JSON}, 422, "invalid_input"),
        (
            "POST",
            "/api/chat",
            {"content": rb'{"question":"?","thread_id":"\ud800"}', "headers": JSON},
            422,
            "invalid_input",
        ),
        ("POST", "/api/chat", {"json": {"question": "?", "max_steps": "5"}}, 422, "invalid_input"),
        ("POST", "/api/chat", {"json": {"question": "?", "max_steps": 5.5}}, 422, "invalid_input"),
        ("GET", "/api/conversations/%00/approvals", {}, 422, "invalid_input"),
        ("GET", "/api/conversations/%ED%A0%80/approvals", {}, 404, "thread_not_found"),
        ("GET", "/api/chat/history?thread_id=%00", {}, 422, "invalid_input"),
        ("PATCH", "/api/conversations/x", {"json": {"expires_at": 5}}, 422, "invalid_input"),
        ("PATCH", "/api/conversations/x", {"json": {}}, 422, "invalid_input"),
        ("PUT", "/api/conversations/x", {}, 405, "method_not_allowed"),
    ],
)
def test_a_request_that_no_route_takes_is_a_problem(
    serve: Any, method: str, path: str, sent: dict[str, Any], status: int, code: str
) -> None:
    running = serve(["Never asked."])
    running.warm()
    answer = running.client.request(method, path, **sent)
    assert (answer.status_code, answer.json()["code"]) == (status, code or "bad_request")
    assert answer.headers["content-type"] == "application/problem+json"
    if status == 405:
        assert answer.headers["allow"] == "DELETE, PATCH"


def test_every_route_has_a_schema_for_each_of_its_answers() -> None:
    found = described.description()
    assert found["openapi"] == "3.1.0"
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            assert {"413", "421", "422", "500", "503"} <= operation["responses"].keys(), f"{method} {path}"
            for status, answer in operation["responses"].items():
                kinds = answer.get("content", {})
                assert kinds or status in {"204", "303"}, f"{method} {path} {status}"
                assert status < "400" or "application/problem+json" in kinds, f"{method} {path} {status}"
                assert all(each["schema"] for each in kinds.values()), f"{method} {path} {status}"
