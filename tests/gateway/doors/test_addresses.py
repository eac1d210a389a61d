"""Wrong addresses: the answer names the right one, in the shape that the client reads."""

from __future__ import annotations

import httpx
import pytest
from tests.gateway.conftest import Start

from longthread.server.gateway import is_wrong
from longthread.server.gateway_access import Door
from longthread.server.requests import own_names
from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.one_backend

OPENAI = [
    "/chat/completions",
    "/responses",
    "/embeddings",
    "/models",
    "/openai/v1/chat/completions",
    "/api/v1/chat/completions",
    "/compatible-mode/v1/chat/completions",
    "/v1beta/openai/chat/completions",
    "/v1/chat/completions/chat/completions",
    "/api/chat",
    "/api/generate",
    "/api/tags",
    "/v1beta/models/gemini-3-pro:generateContent",
    "/v1/models/gemini-3-pro:streamGenerateContent",
    "/openai/deployments/gpt/chat/completions",
    "/metrics",
    "/v1",
    "/v1/",
    "/",
]
BARE = [
    "/messages",
    "/anthropic/v1/messages",
    "/anthropic",
    "/v1/v1/messages",
    "/v1/v1/chat/completions",
    "/v1/messages/v1/messages",
]


@pytest.mark.parametrize("path", [*OPENAI, *BARE])
async def test_a_wrong_address_is_told_the_right_one(provider: ProviderEmulator, start: Start, path: str) -> None:
    url = await start(provider, door=Door(own_names("127.0.0.1")))
    async with httpx.AsyncClient(trust_env=False) as client:
        answers = [await client.post(url + path, json={"model": "m"}), await client.get(url + path)]
    for answer in answers:
        error = answer.json()["error"]
        is_anthropics = "messages" in path or "anthropic" in path
        assert (answer.status_code, error["type"]) == (
            404,
            "not_found_error" if is_anthropics else "invalid_request_error",
        )
        assert (answer.json().get("type") == "error") is is_anthropics
        right = f"{url}/v1" if path in OPENAI else url
        assert any(word.rstrip(",") == right for word in error["message"].split()), error["message"]
    assert provider.requests == []


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models",
        "/v1/models/a:free",
        "/v1/models/openai/gpt-5",
        "/v1/files/f/content",
        "/v1/messages/batches/b/results",
        "/v1/x",
    ],
)
def test_what_providers_have_is_passed_on(path: str) -> None:
    assert not is_wrong(path)
