"""What calls through the gateway cost is written with them, and a spent budget refuses the next one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.gateway.conftest import Start

from longthread.access.keys import NewKey, create_key
from longthread.access.spending import SpendingGroup, SpendingRow, list_spending
from longthread.access.users import SpendingLimit, create_user, update_user
from longthread.server.authentication import Authentication
from longthread.server.gateway_access import Door
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.one_backend

HELLO = [{"role": "user", "content": "Hello"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "m", "messages": HELLO},
    "/v1/responses": {"model": "m", "input": "Hello"},
    "/v1/messages": {"model": "m", "max_tokens": 50, "messages": HELLO},
}
PRICES = {"emulated:m": {"input": 1_000_000, "output": 1_000_000}}
Open = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
async def open_client(store: Driver, start: Start, provider: ProviderEmulator) -> Any:
    """Opens a client with a key of a user who may have a budget."""
    opened: list[httpx.AsyncClient] = []

    async def open_(
        of_user: SpendingLimit | None = None, prices: Any = None, before: Any = provider, **limits: Any
    ) -> httpx.AsyncClient:
        settings = Settings.of(auth="login", prices=PRICES if prices is None else prices)
        async with store.writing() as tx:
            ada = await create_user(tx, "ada", user_id="ada")
            await update_user(tx, ada, budget=of_user)
            _, key = await create_key(tx, ada, NewKey("gw", ["gateway"], **limits))
        about: dict[str, Any] = {"door": Door(has_users=True), "callers": Authentication(settings, store)}
        url = await start(before, **about, api_key="own", user="default", settings=settings)
        opened.append(httpx.AsyncClient(base_url=url, headers={"x-longthread-key": key}, trust_env=False))
        return opened[-1]

    yield open_
    for client in opened:
        await client.aclose()


async def spent(store: Driver, by: SpendingGroup = "model") -> list[SpendingRow]:
    today = datetime.now(UTC).date()
    async with store.reading() as tx:
        return await list_spending(tx, by, since=today, until=today)


@pytest.mark.parametrize("keep", [{}, {"x-longthread-keep": "nothing"}])
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("path", list(BODIES))
async def test_each_call_is_written_once(
    open_client: Open, store: Driver, path: str, streams: bool, keep: dict[str, str]
) -> None:
    client = await open_client()
    for _ in range(2):
        answer = await client.post(path, json=BODIES[path] | {"stream": streams}, headers=keep)
        assert answer.status_code == 200 and answer.text
    [row] = await spent(store)
    assert (row.subject, row.requests, row.unpriced) == ("emulated:m", 2, 0)
    assert row.tokens_in > 0 and row.tokens_out > 0 and row.cost == row.tokens_in + row.tokens_out
    assert [each.subject for each in await spent(store, "user")] == ["ada"]


async def test_counting_tokens_and_a_refusal_of_the_provider_cost_nothing(open_client: Open, store: Driver) -> None:
    client = await open_client()
    await client.post("/v1/messages/count_tokens", json=BODIES["/v1/messages"])
    wrong = await client.post("/v1/messages", json=BODIES["/v1/messages"] | {"messages": "?"})
    assert wrong.status_code >= 400
    assert await spent(store) == []


@pytest.mark.parametrize("whose", ["of_user", "budget"])
@pytest.mark.parametrize("path", list(BODIES))
async def test_a_spent_budget_refuses_the_next_call_in_its_dialect(
    open_client: Open, provider: ProviderEmulator, path: str, whose: str
) -> None:
    client = await open_client(**{whose: SpendingLimit(1, "tokens", "day")})
    assert (await client.post(path, json=BODIES[path])).status_code == 200
    count = len(provider.requests)
    answer = await client.post(path, json=BODIES[path])
    assert answer.status_code == 429 and 0 < int(answer.headers["retry-after"]) <= 86_400
    assert answer.headers["x-should-retry"] == "false"
    error = answer.json()["error"]
    assert "is spent" in error["message"]
    assert error["type"] == "rate_limit_error" if path.endswith("messages") else error["code"] == "budget_spent"
    assert len(provider.requests) == count


async def test_a_budget_in_money_needs_a_price(open_client: Open, provider: ProviderEmulator) -> None:
    client = await open_client(SpendingLimit(1, "money", "day"), prices={})
    answer = await client.post("/v1/messages", json=BODIES["/v1/messages"])
    assert answer.status_code == 403 and "emulated:m has no price" in answer.json()["error"]["message"]
    assert provider.requests == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/batches", {"input_file_id": "f"}),
        ("/v1/images/generations", {"model": "m", "prompt": "A rocket"}),
        ("/v1/completions", {"model": "m", "prompt": "Hello", "stream": True}),
    ],
)
async def test_what_no_reply_counts_is_refused_where_there_is_a_budget(
    open_client: Open, provider: ProviderEmulator, path: str, body: dict[str, Any]
) -> None:
    client = await open_client(SpendingLimit(1_000_000, "tokens", "day"))
    answer = await client.post(path, json=body)
    assert answer.status_code == 403 and "no reply says" in answer.json()["error"]["message"]
    assert provider.requests == []


async def test_embeddings_are_counted(open_client: Open, store: Driver) -> None:
    with ProviderEmulator(None, embed=lambda texts: [[1.0, 0.0]] * len(texts)) as embedder:
        client = await open_client(SpendingLimit(3, "tokens", "day"), before=embedder)
        asked = {"model": "m", "input": ["one", "two", "three"]}
        answer = await client.post("/v1/embeddings", json=asked)
        assert answer.status_code == 200 and len(answer.json()["data"]) == 3
        [row] = await spent(store)
        assert (row.subject, row.requests, row.tokens_in) == ("emulated:m", 1, 3)
        assert (await client.post("/v1/embeddings", json=asked)).status_code == 429


@pytest.mark.parametrize(("models", "allowed"), [(["m"], True), (["emulated:*"], True), (["other", "n*"], False)])
async def test_a_key_asks_the_models_that_it_is_for(
    open_client: Open, provider: ProviderEmulator, models: list[str], allowed: bool
) -> None:
    client = await open_client(models=models)
    for path, body in BODIES.items():
        answer = await client.post(path, json=body)
        assert answer.status_code == (200 if allowed else 403), answer.text
    assert bool(provider.requests) == allowed


async def test_a_key_sends_as_many_requests_a_minute_as_it_may(open_client: Open) -> None:
    client = await open_client(requests_per_minute=2)
    answers = [await client.post("/v1/messages", json=BODIES["/v1/messages"]) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert answers[-1].headers["x-should-retry"] == "true" and 0 < int(answers[-1].headers["retry-after"]) <= 60
    assert answers[-1].json()["error"]["type"] == "rate_limit_error"
