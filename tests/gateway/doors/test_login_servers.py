"""Where users log in, the server's gateway and the gateway's own process ask each caller for a user's API key."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.gateway.doors.test_door import server
from tests.gateway.doors.test_users import Callers, threads_of

from longthread.access import keys, users
from longthread.access.grants import add_grant
from longthread.access.keys import NewKey
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator
from longthread.tools.catalog.definitions import Catalog

pytestmark = pytest.mark.one_backend

SECRET, TOKEN = "the company's secret", "one-token-of-a-gateway"


@asynccontextmanager
async def process(warmed: Path, folder: Path, database: str) -> AsyncIterator[str]:
    """`longthread gateway`, which takes others than this machine's programs."""
    command = [str(warmed / "longthread"), "gateway", "--database", database, "--port", "0", "--host", "0.0.0.0"]
    given = os.environ | {"LONGTHREAD_DATA_DIR": str(folder), "LONGTHREAD_AUTH": "login"}
    given |= {"LONGTHREAD_PUBLIC_URL": "http://127.0.0.1", "LONGTHREAD_GATEWAY_TOKEN": TOKEN}
    output = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(*command, stdout=output, stderr=asyncio.subprocess.STDOUT, env=given)
    assert running.stdout is not None
    said: list[str] = []
    try:
        while line := (await running.stdout.readline()).decode():
            said.append(line)
            if "gateway is at" in line:
                break
        assert said and "gateway is at" in said[-1], "".join(said)
        yield f"http://127.0.0.1:{said[-1].rsplit(':', 1)[1].strip()}"
    finally:
        running.terminate()
        await running.communicate()


@pytest.fixture(params=["server", "process"])
async def callers(
    request: pytest.FixtureRequest,
    store: Driver,
    store_address: str,
    tmp_path: Path,
    provider: ProviderEmulator,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Callers]:
    """Two users of a real server; the first one may use its upstream."""
    monkeypatch.setenv("LONGTHREAD_SECRET_COMPANY", SECRET)
    given = {"base_url": provider.anthropic_url, "dialects": ["anthropic", "completions"], "api_key": "${COMPANY}"}
    [made] = await Catalog(store).apply([{"kind": "upstream", "name": "company", **given}])
    async with store.writing() as tx:
        await users.create_user(tx, "root", role="admin", user_id="default")
        ada, bob = await users.create_user(tx, "ada"), await users.create_user(tx, "bob")
        secrets = [(await keys.create_key(tx, user, NewKey("gw", ["gateway"])))[1] for user in (ada, bob)]
        await add_grant(tx, "upstream", made.definition.id, "user", ada.id, "use", by="default")
    if request.param == "process":
        running = process(request.getfixturevalue("warmed"), tmp_path, store_address)
    else:
        about = {"data_dir": tmp_path, "database": store_address, "auth": "login", "gateway_token": TOKEN}
        running = server(Settings.load(env_file=None, **about))
    async with running as url:
        yield Callers(url, *secrets, ada.id, bob.id)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
async def test_a_real_server_knows_its_callers_by_their_keys_alone(
    store: Driver, callers: Callers, provider: ProviderEmulator, path: str
) -> None:
    for headers in ({}, {"x-api-key": TOKEN}, {"x-longthread-token": TOKEN}, {"authorization": "Bearer sk-other"}):
        answer = await callers.ask(path, **headers)
        assert (answer.status_code, answer.headers.get("www-authenticate")) == (401, "Bearer"), headers
    assert provider.requests == []
    assert (await callers.ask(path, **{"x-api-key": callers.ada})).status_code == 200
    [sent] = provider.requests
    assert SECRET in str(dict(sent.headers)) and callers.ada not in str(dict(sent.headers))
    assert len(await threads_of(store, callers.ada_id)) == 1
    assert await threads_of(store, callers.bob_id) == await threads_of(store, "default") == []
