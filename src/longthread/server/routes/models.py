"""The models that can be asked, and the keys of their providers."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from longthread.errors import (
    KeyNotFound,
    KeyRefused,
    ProviderUnreachable,
    SecretKeyUnusable,
    SettingsNotAllowed,
    StoreReadOnly,
)
from longthread.llm.model_list import expect_key, local_servers, models_of
from longthread.llm.models import DEMO, model_name
from longthread.llm.provider_keys import PROVIDERS, KeyProvider, StoredKey, environment_key
from longthread.server.fields import Flag, Name
from longthread.server.model_answers import KeyChecked, ModelInfo, ModelList, ModelOrigin, ModelProvider
from longthread.server.openapi import problems
from longthread.server.state import OWNER_ONLY, Caller, Rights, Served, ServedDep
from longthread.store import windows

router = APIRouter(prefix="/api/models", tags=["models"])

Provider = Annotated[KeyProvider, Path()]


class KeyBody(BaseModel):
    """A key of a provider. With `check` it is stored only if the provider takes it."""

    model_config = ConfigDict(extra="forbid")

    key: Annotated[Name, Field(max_length=500)]
    check: Flag = True


class CheckBody(BaseModel):
    """A key to check; without one, the key that runs use."""

    model_config = ConfigDict(extra="forbid")

    key: Annotated[Name, Field(max_length=500)] | None = None


@router.get("", responses=problems(reads=True))
async def models(served: ServedDep, user: Caller, rights: Rights) -> ModelList:
    """The models that can be asked: the configured one, the demo, those of servers that are found on this machine, and
    those that providers list for their keys. A provider that does not answer within seconds says so in `problem`."""
    settings, own = served.analyst.settings, rights.owner
    stored = {each.provider: each for each in await served.analyst.keys.stored(user)}
    servers = await local_servers() if own else []
    providers = await asyncio.gather(*(_provider(served, each, stored.get(each), asks=own) for each in PROVIDERS))
    default = model_name(None, settings)
    async with served.analyst.store.reading() as tx:
        probed = await windows.protocols(tx)

    def info(name: str, origin: ModelOrigin, provider: str | None = None) -> ModelInfo:
        protocol = probed.get(name) or probed.get(name.partition(":")[2])
        return {"name": name, "origin": origin, "provider": provider, "protocol": protocol}

    found = [info(default, "demo" if default == DEMO else "configured")]
    found += [] if default == DEMO else [info(DEMO, "demo")]
    for server in servers:
        found += [info(name, "local", server.kind) for name in server.models]
    for about, names in providers:
        found += [info(name, "provider", about["provider"]) for name in names]
    return {
        "default": default,
        "models": list({each["name"]: each for each in reversed(found)}.values())[::-1],
        "providers": [about for about, _ in providers],
        "servers": [{"kind": server.kind, "url": server.url} for server in servers],
        "keys_allowed": own,
    }


@router.put(
    "/keys/{provider}",
    dependencies=[OWNER_ONLY],
    responses=problems(
        KeyRefused, ProviderUnreachable, SecretKeyUnusable, SettingsNotAllowed, StoreReadOnly, body=True
    ),
)
async def save_key(served: ServedDep, user: Caller, provider: Provider, body: KeyBody) -> KeyChecked:
    """Store a key, sealed, for the user's next runs. It is given back to nobody."""
    key = SecretStr(body.key)
    expect_key(provider, key)
    names = await models_of(provider, key, served.analyst.settings) if body.check else None
    await served.analyst.keys.save(provider, body.key, user_id=user)
    return {"provider": provider, "models": names}


@router.post(
    "/keys/{provider}/check",
    dependencies=[OWNER_ONLY],
    responses=problems(KeyNotFound, KeyRefused, ProviderUnreachable, SettingsNotAllowed, body=True),
)
async def check_key(served: ServedDep, user: Caller, provider: Provider, body: CheckBody | None = None) -> KeyChecked:
    """Ask a provider for its models with a key: that uses no tokens, and tells whether the key is right."""
    settings = served.analyst.settings
    given = SecretStr(body.key) if body is not None and body.key is not None else None
    key = given or (await served.analyst.keys.of(user)).get(provider) or environment_key(provider, settings)
    if key is None:
        raise KeyNotFound(provider=provider)
    return {"provider": provider, "models": await models_of(provider, key, settings)}


@router.delete(
    "/keys/{provider}",
    dependencies=[OWNER_ONLY],
    status_code=204,
    responses=problems(KeyNotFound, SettingsNotAllowed),
)
async def delete_key(served: ServedDep, user: Caller, provider: Provider) -> Response:
    """Delete a stored key. Runs under way keep it."""
    if not await served.analyst.keys.remove(provider, user_id=user):
        raise KeyNotFound(provider=provider)
    return Response(status_code=204)


async def _provider(
    served: Served, provider: KeyProvider, stored: StoredKey | None, *, asks: bool
) -> tuple[ModelProvider, list[str]]:
    settings = served.analyst.settings
    key = stored.key if stored is not None else None
    about: ModelProvider = {
        "provider": provider,
        "key": "stored" if key is not None else None,
        "set_at": stored.set_at.isoformat() if stored is not None else None,
        "problem": None,
    }
    if key is None and (key := environment_key(provider, settings)) is not None:
        about["key"] = "environment"
    if key is None and stored is not None:
        about["key"], about["problem"] = "stored", "unreadable"
    names: list[str] = []
    if key is not None and asks:
        try:
            names = await models_of(provider, key, settings)
        except KeyRefused:
            about["problem"] = "refused"
        except ProviderUnreachable:
            about["problem"] = "unreachable"
    return about, names
