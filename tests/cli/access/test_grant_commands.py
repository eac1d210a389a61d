"""`longthread grants`: who may use what, by the names that people know."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longthread.access.users import create_group, create_user
from longthread.store.open import open_store

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


def make_people(address: str) -> None:
    async def make() -> None:
        async with open_store(address) as store, store.writing() as tx:
            await create_user(tx, "ben")
            await create_group(tx, "Finance")

    asyncio.run(make())


def listed(run: Run, *options: str) -> list[tuple[str, ...]]:
    found = [json.loads(line) for line in run("grants", "list", "--json", *options).stdout.splitlines()]
    return [(each["item_name"], each["to_name"] or each["to_kind"], each["may"]) for each in found]


@pytest.mark.new_database
def test_rights_are_granted_listed_and_taken_back(run: Run, store_address: str, tmp_path: Path) -> None:
    make_people(store_address)
    clerk = tmp_path / "clerk.yaml"
    clerk.write_text("kind: agent\nname: clerk\nsystem_prompt: You are a clerk.\n")
    assert run("apply", "-f", str(clerk)).exit_code == 0
    before = listed(run, "--kind", "agent")
    assert sorted(before) == [("analyst", "everyone", "use"), ("assistant", "everyone", "use")]
    assert run("grants", "add", "agent", "clerk", "--user", "BEN", "--edit").exit_code == 0
    assert run("grants", "add", "agent", "clerk", "--group", "finance").exit_code == 0
    assert run("grants", "add", "model", "openai:*", "--everyone").exit_code == 0
    agents = set(listed(run, "--kind", "agent")) - set(before)
    assert agents == {("clerk", "ben", "edit"), ("clerk", "finance", "use")}
    assert ("openai:*", "everyone", "use") in listed(run, "--kind", "model")
    assert run("grants", "remove", "agent", "clerk", "--user", "ben").exit_code == 0
    assert set(listed(run, "--kind", "agent")) - set(before) == {("clerk", "finance", "use")}
    assert run("grants", "remove", "source", "demo", "--everyone").exit_code == 0
    assert "demo" not in [name for name, _, _ in listed(run, "--kind", "source")]
    assert run("grants", "add", "source", "demo", "--everyone").exit_code == 0
    assert "demo" in [name for name, _, _ in listed(run, "--kind", "source")]


@pytest.mark.new_database
def test_what_cannot_be_granted_says_why(run: Run, store_address: str) -> None:
    make_people(store_address)
    wrong = {
        ("add", "agent", "nothing", "--everyone"): (2, "There is no agent nothing"),
        ("add", "agent", "analyst"): (2, "Say to whom"),
        ("add", "agent", "analyst", "--everyone", "--user", "ben"): (2, "Say to whom"),
        ("add", "source", "demo", "--user", "nobody"): (3, "There is no user nobody"),
        ("add", "source", "demo", "--group", "none"): (3, "There is no group none"),
        ("remove", "source", "demo", "--user", "ben"): (3, "There is no such grant"),
    }
    for arguments, (code, said) in wrong.items():
        assert said in str(run("grants", *arguments, code=code).exception), arguments
