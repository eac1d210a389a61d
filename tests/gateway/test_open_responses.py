"""The seven cases of Open Responses' compliance suite through the gateway, in the forms of `openresponses-types`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
import pytest
from tests.gateway.conftest import Start
from tests.gateway.open_responses import check, check_events
from tests.gateway.responses_talk import CLOCK, MODEL

from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.one_backend

Response = dict[str, Any]
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


@pytest.fixture
def provider() -> Iterator[ProviderEmulator]:
    with ProviderEmulator(None) as emulator:
        yield emulator


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def said(response: Response) -> str:
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


def basic(response: Response) -> None:
    assert said(response) == "You said: Say hello."
    assert response["status"] == "completed"


def called(response: Response) -> None:
    call = response["output"][-1]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == ("function_call", "clock", {"zone": "UTC"})
    assert response["tools"][0]["name"] == "clock"


def reasoned(response: Response) -> None:
    reasoning, message = response["output"]
    assert reasoning["type"] == "reasoning"
    assert reasoning["encrypted_content"]
    assert message["phase"] == "final_answer"


LOOK = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": PIXEL}]
CASES: Mapping[str, tuple[dict[str, Any], Callable[[Response], None]]] = {
    "basic text": ({"input": [user("Say hello.")]}, basic),
    "system prompt": (
        {"input": [{"type": "message", "role": "system", "content": "Be a pirate."}, user("Say hello.")]},
        basic,
    ),
    "tool calling": ({"input": [user('use the tool clock with {"zone": "UTC"}')], "tools": [CLOCK]}, called),
    "image input": (
        {"input": [{"type": "message", "role": "user", "content": LOOK}]},
        lambda response: _equal(said(response), "You said: What is it?"),
    ),
    "multi-turn": (
        {"input": [user("My name is Alice."), {"type": "message", "role": "assistant", "content": "Hi!"}, user("Me?")]},
        lambda response: _equal(said(response), "You said: Me?"),
    ),
    "reasoning and phase": (
        {"input": [user("Think.")], "reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"]},
        reasoned,
    ),
}


def _equal(found: str, wanted: str) -> None:
    assert found == wanted


async def responded(client: httpx.AsyncClient, url: str, body: dict[str, Any]) -> Response:
    """A response, as the provider gave it, as a stream of it, and as it is retrieved: each in the right form."""
    whole = await client.post(f"{url}/v1/responses", json={"model": MODEL, **body})
    assert whole.status_code == 200, whole.text
    stream = await client.post(f"{url}/v1/responses", json={"model": MODEL, **body, "stream": True})
    events = [json.loads(line[6:]) for line in stream.text.splitlines() if line.startswith("data: {")]
    check_events(events)
    check(events[-1]["response"])
    found: Response = whole.json()
    check(found)
    for response in (found, events[-1]["response"]):
        again = (await client.get(f"{url}/v1/responses/{response['id']}")).json()
        check(again)
        assert again == response
    return found


@pytest.mark.parametrize("case", CASES)
async def test_a_case_of_the_compliance_suite(start: Start, provider: ProviderEmulator, case: str) -> None:
    """`streaming`, the seventh, is a part of each."""
    url = await start(provider)
    body, look = CASES[case]
    async with httpx.AsyncClient() as client:
        look(await responded(client, url, body))
        look(await responded(client, url, body | {"store": True}))
    assert provider.requests[0].body["input"] == body["input"]
