"""A server without a login has no accounts, whatever users its store has."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.access.team import code_of
from tests.server.conftest import Serve

from longthread.access.users import create_user, list_users
from longthread.errors import ServerError
from longthread.server.access_table import ACCESS
from longthread.server.app import create_app
from longthread.settings import Settings
from longthread.store.open import open_store

OF_ACCOUNTS = [operation for operation, rule in ACCESS.items() if rule.of_account]


async def add_ada(address: str) -> None:
    async with open_store(address) as store, store.writing() as tx:
        await create_user(tx, "Ada", role="admin", password="hash", user_id="default")


def test_the_routes_of_an_account_are_those_of_ones_own() -> None:
    own = {each for each, rule in ACCESS.items() if each.split()[1].startswith("/api/me") and rule.scope is None}
    assert set(OF_ACCOUNTS) == own
    assert "POST /api/me/keys" in own


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_without_a_login_nobody_has_an_account(serve: Serve, store_address: str, is_proxied: bool) -> None:
    server = serve(["An answer."], no_login=True)
    await add_ada(store_address)  # after the start, which would be refused
    via = {"Via": "1.1 proxy"} if is_proxied else {}
    for operation in OF_ACCOUNTS:
        method, path = operation.split()
        path = path.format(session_id="x", key_id="x") if "{" in path else path
        body = {"name": "k", "scopes": ["gateway"]} if method in ("POST", "PUT", "PATCH") else None
        answer = server.client.request(method, path, json=body, headers=via)
        assert code_of(answer) == (403, "account_missing"), operation
    async with open_store(store_address) as store, store.reading() as tx:
        assert [each.name for each in await list_users(tx)] == ["ada"]
        assert await tx.fetch("select_keys") == []


async def test_a_store_with_users_is_not_served_without_a_login(tmp_path: Path, store_address: str) -> None:
    given = {"database": store_address, "data_dir": tmp_path, "no_login": True}
    app = create_app(Settings.load(env_file=None, **given))
    async with app.router.lifespan_context(app):
        pass
    await add_ada(store_address)
    app = create_app(Settings.load(env_file=None, **given))
    with pytest.raises(ServerError, match="has users who log in"):
        async with app.router.lifespan_context(app):
            pass
    app = create_app(Settings.load(env_file=None, **given | {"no_login": False}))
    async with app.router.lifespan_context(app):
        pass
