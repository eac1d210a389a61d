"""`longthread keys` and `longthread prices`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from longthread.access.keys import find_key_principal
from longthread.access.users import SpendingLimit, create_user
from longthread.cli.commands.keys import read_budget
from longthread.errors import InvalidInput
from longthread.store.open import open_store

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


def lines(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def make_users(address: str) -> None:
    async def make() -> None:
        async with open_store(address) as store, store.writing() as tx:
            await create_user(tx, "Ada", role="admin", user_id="default")
            await create_user(tx, "ben")

    asyncio.run(make())


def user_of(address: str, key: str) -> str | None:
    async def find() -> str | None:
        async with open_store(address) as store, store.reading() as tx:
            found = await find_key_principal(tx, key)
            return found.name if found is not None else None

    return asyncio.run(find())


@pytest.mark.new_database
def test_keys_are_made_listed_and_revoked(run: Run, store_address: str) -> None:
    make_users(store_address)
    made = run("keys", "add", "ci")
    assert "the key ci of ada" in made.stderr and "not shown again" in made.stderr
    key = made.stdout.strip()
    assert user_of(store_address, key) == "ada"
    scopes = ("--scope", "gateway", "--scope", "read", "--model", "openai:gpt-5", "--expires", "90d")
    [full] = lines(
        run("keys", "add", "商店", "--user", "Ben", *scopes, "--budget", "20/month", "--requests", "60", "--json")
    )
    assert user_of(store_address, full["key"]) == "ben"
    assert (full["user"], full["scopes"], full["models"]) == ("ben", ["gateway", "read"], ["openai:gpt-5"])
    assert full["budget"] == {"amount": 20.0, "unit": "money", "period": "month"}
    assert (full["requests_per_minute"], full["agents"], full["parallel"]) == (60, None, None)
    assert [each["name"] for each in lines(run("keys", "list", "--json"))] == ["ci", "商店"]
    assert [each["name"] for each in lines(run("keys", "list", "--json", "--user", "ben"))] == ["商店"]
    text = run("keys", "list").stdout
    assert "20/month" in text and key not in text and full["key"] not in text
    assert "Revoked: the key ci of ada" in run("keys", "revoke", key[3:11]).stdout
    assert user_of(store_address, key) is None
    run("keys", "revoke", key[3:11], code=3)
    run("keys", "add", "x", "--user", "nobody", code=3)
    run("keys", "add", "x", "--scope", "root", code=2)
    run("keys", "add", "x", "--budget", "20", code=2)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("20/month", SpendingLimit(20, "money", "month")),
        (" 0.5 / day ", SpendingLimit(0.5, "money", "day")),
        ("100_000tokens/week", SpendingLimit(100_000, "tokens", "week")),
        ("1 token/day", SpendingLimit(1, "tokens", "day")),
    ],
)
def test_a_budget_is_an_amount_and_a_period(text: str, limit: SpendingLimit) -> None:
    assert read_budget(text) == limit


@pytest.mark.parametrize("text", ["", "20", "/day", "-1/day", "20/year", "20eur/day", "inf/day", "_/day"])
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_budget(text)


def test_prices_are_set_listed_and_removed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("prices", "list", "--json").stdout == ""
    set_ = run("prices", "set", "openai:gpt-5", "--input", "1.25", "--output", "10", "--cached", "0.125")
    file = run("prices", "path").stdout.strip()
    assert file in set_.stdout.replace("\n", "")
    monkeypatch.setenv("LONGTHREAD_PRICES", '{"own": {"input": 1, "output": 2}}')
    monkeypatch.setenv("LONGTHREAD_CURRENCY", "EUR")
    first, second = lines(run("prices", "list", "--json"))
    assert first == {"model": "openai:gpt-5", "input": 1.25, "output": 10.0, "cached": 0.125, "currency": "EUR"}
    assert (second["model"], second["cached"]) == ("own", None)
    assert "openai:gpt-5\t1.25\t10\t0.125" in run("prices", "list").stdout
    run("prices", "remove", "openai:gpt-5")
    assert [each["model"] for each in lines(run("prices", "list", "--json"))] == ["own"]
    run("prices", "remove", "openai:gpt-5", code=2)
    run("prices", "set", " ", "--input", "1", "--output", "1", code=2)
    run("prices", "set", "m", "--input", "inf", "--output", "1", code=2)
    run("prices", "set", "m", "--input", "-1", "--output", "1", code=2)
