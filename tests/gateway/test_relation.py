"""The relation `conversation_state` holds true for the gateway's threads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
from tests.gateway.states import relation, rows

from longthread.gateway.dialects import DIALECTS
from longthread.gateway.http import Incoming
from longthread.gateway.service import Gateway, GatewayOptions
from longthread.gateway.upstream import Routes, Upstream
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.one_backend

TTL = 3600


@pytest.fixture
async def gateway(store: Driver, provider: ProviderEmulator) -> AsyncIterator[Gateway]:
    upstream = Upstream("emulated", provider.anthropic_url, list(DIALECTS))
    opened = Gateway(store, Routes({"emulated": upstream}), GatewayOptions("ada", ttl=TTL))
    yield opened
    await opened.close()


async def ask(gateway: Gateway, agent: str, messages: list[Any], *, thinks: bool = True) -> tuple[str, Any]:
    """Return the thread and what the reply holds."""
    body: dict[str, Any] = {"model": "claude-opus-5-5", "max_tokens": 2000, "messages": messages}
    body |= {"thinking": {"type": "enabled", "budget_tokens": 1024}} if thinks else {}
    headers = [(b"x-api-key", b"k"), (b"anthropic-version", b"2023-06-01"), (b"user-agent", agent.encode())]
    answer = await gateway.reply(
        DIALECTS["anthropic"], Incoming("POST", "/v1/messages", headers, json.dumps(body).encode())
    )
    assert answer.status == 200, answer.body
    return dict(answer.headers)[b"x-conversation-id"].decode(), json.loads(answer.body)["content"]


def turn(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    ("agent", "kind", "client"),
    [
        ("claude-cli/2.1.332 (external, cli)", "claude_code", "claude_code"),
        ("Cursor/1.7", "cursor", "cursor"),
        ("augment.cli/0.5", "augment", "augment"),
        ("codex_cli_rs/0.169.0 (Linux)", "unknown", "codex"),
        ("AsyncOpenAI/Python 3.57.0", "unknown", "sdk"),
        ("ai/7.0.173 ai-sdk/provider-utils/4", "unknown", "ai_sdk"),
        ("curl/8", "unknown", "unknown"),
    ],
)
async def test_the_client_is_told_by_its_kind(
    gateway: Gateway, store_address: str, agent: str, kind: str, client: str
) -> None:
    scid, _ = await ask(gateway, agent, [turn("user", "你好")])
    row = relation(store_address, scid)
    assert row is not None
    assert (row["client_type"], row["access_count"]) == (kind, 1)
    assert rows(store_address, "SELECT client FROM thread_clients") == [(client,)]


async def test_signature_expiry_and_accesses_follow_the_calls(gateway: Gateway, store_address: str) -> None:
    said = [turn("user", "Hello")]
    scid, first = await ask(gateway, "claude-cli/2", said)
    row = relation(store_address, scid)
    assert row is not None
    assert row["last_signature"] == first[0]["signature"]
    expiry = datetime.fromisoformat(row["expires_at"]) - datetime.fromisoformat(row["updated_at"])
    assert abs(expiry.total_seconds() - TTL) < 60
    said += [turn("assistant", first), turn("user", "again")]
    same, second = await ask(gateway, "claude-cli/2", said)
    later = relation(store_address, scid)
    assert (same, later is not None) == (scid, True)
    assert later is not None
    assert (later["last_signature"], later["access_count"]) == (second[0]["signature"], 2)
    assert later["expires_at"] >= row["expires_at"]
    # A reply without thinking has no signature: the last one stays.
    without = [message | {"content": [b for b in message["content"] if b["type"] == "text"]} for message in said[1:2]]
    await ask(gateway, "claude-cli/2", [said[0], *without, turn("user", "quietly")], thinks=False)
    last = relation(store_address, scid)
    assert last is not None
    assert (last["last_signature"], last["access_count"]) == (second[0]["signature"], 3)
    assert [message["role"] for message in last["authoritative_history"]] == ["user", "assistant", "user", "assistant"]
