"""The models that can be asked, and the keys of their providers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from longthread.errors import (
    InvalidInput,
    KeyNotFound,
    KeyRefused,
    ModelUnavailable,
    ProviderUnreachable,
    SecretKeyUnusable,
    SettingsNotAllowed,
    StoreReadOnly,
)
from longthread.llm.connections import CONNECTION, Connection, StoredConnection, environment_key
from longthread.llm.model_facts import check_model
from longthread.llm.models import DEMO, model_name
from longthread.llm.providers import OWN, ROWS, Credential, Provider, address_of, bare_name, key_for
from longthread.llm.server_facts import expect_key, find_models, local_servers, models_of, read_address
from longthread.server.catalog_answers import KeyChecked, ModelChecked, ModelInfo, ModelList, ModelOrigin, ModelProvider
from longthread.server.fields import Flag, Name
from longthread.server.openapi import problems
from longthread.server.state import KNOWN_ONLY, OWNER_ONLY, Caller, CallerRights, Granted, Rights, Served, ServedDep
from longthread.settings import Settings
from longthread.store import endpoints

router = APIRouter(prefix="/api/models", tags=["models"])

ProviderId = Annotated[str, Path(pattern=CONNECTION), BeforeValidator(unquote)]
KeyText = Annotated[Name, Field(max_length=500)]
UrlText = Annotated[Name, Field(max_length=500)]


class KeyBody(BaseModel):
    """A provider's key, and the address of a server of one's own or of one among a provider's. With `check` both are
    stored only if the provider answers and takes the key."""

    model_config = ConfigDict(extra="forbid")

    key: KeyText | None = None
    url: UrlText | None = None
    check: Flag = True


class CheckBody(BaseModel):
    """A key and an address to check; without them, those that runs use."""

    model_config = ConfigDict(extra="forbid")

    key: KeyText | None = None
    url: UrlText | None = None


class ModelBody(BaseModel):
    """A model by its name in requests."""

    model_config = ConfigDict(extra="forbid")

    model: Annotated[Name, Field(max_length=300)]


@router.get("", responses=problems(reads=True))
async def models(served: ServedDep, user: Caller, rights: Rights, granted: Granted) -> ModelList:
    """The models that can be asked: the configured one, the demo, those of servers that are found on this machine, and
    those that providers list for their keys. A provider that does not answer within seconds says so in `problem`.
    Where users log in, the list has what was granted to the caller, and the models of the caller's own keys."""
    settings, own = served.analyst.settings, rights.owner
    logs_in = rights.principal.via != "local"
    stored = await served.analyst.keys.list_connections(user) if own or logs_in else []
    rows = _rows(settings, stored) if own or logs_in else []
    servers = await local_servers() if own else []
    lists = await asyncio.gather(*(_list(row) for row in rows))
    default = model_name(None, settings)
    async with served.analyst.store.reading() as tx:
        probed = await endpoints.list_protocols(tx)

    def info(name: str, origin: ModelOrigin, provider: str | None = None) -> ModelInfo:
        protocol = probed.get(name) or probed.get(bare_name(name))
        return {"name": name, "origin": origin, "provider": provider, "protocol": protocol}

    found = [info(default, "demo" if default == DEMO else "configured")]
    found += [] if default == DEMO else [info(DEMO, "demo")]
    for server in servers:
        found += [info(name, "local", server.kind) for name in server.models]
    for row, names in zip(rows, lists, strict=True):
        found += [info(name, "provider", row.about["provider"]) for name in names]
    connected = {row.about["provider"] for row in rows if row.about["key"] == "stored"}
    found = [each for each in found if each["provider"] in connected or granted.may_use("model", each["name"])]
    exact = [item for kind, item in granted.granted if kind == "model" and "*" not in item]
    found += [info(name, "provider", name.partition(":")[0]) for name in exact if ":" in name]
    return {
        "default": default,
        "models": list({each["name"]: each for each in reversed(found)}.values())[::-1],
        "providers": [
            row.about if own or row.about["provider"] in connected else _hide(row.about)
            for row in rows
            if own or row.about["provider"] in connected or _is_vendor(row.about["provider"])
        ],
        "servers": [{"kind": server.kind, "url": server.url} for server in servers],
        "keys_allowed": own or logs_in,
    }


@router.put(
    "/keys/{provider}",
    responses=problems(
        KeyNotFound, KeyRefused, ProviderUnreachable, SecretKeyUnusable, SettingsNotAllowed, StoreReadOnly, body=True
    ),
)
async def save_key(served: ServedDep, user: Caller, rights: Rights, provider: ProviderId, body: KeyBody) -> KeyChecked:
    """Store a key and its address, sealed, for the user's next runs. The key is given back to nobody. It is checked
    first. `own:NAME` is a server of your own. Where users log in, each keeps keys of the known providers, at their own
    addresses; administrators alone name others."""
    await _expect_may_keep(served, user, rights, provider, body)
    url, key = await _read_given(served, user, provider, body.url, body.key)
    if key is None and not provider.startswith(f"{OWN}:"):
        raise KeyNotFound(provider=provider)
    if key is not None:
        expect_key(provider, key)
    url, names = await find_models(provider, key, url) if body.check else (read_address(url), None)
    if body.key is None and provider in ROWS and await _is_environment(served, user, provider, url):
        return {"provider": provider, "url": url, "models": names}  # a copy would outlive it
    await served.analyst.keys.save(provider, Connection(url, key), user_id=user)
    return {"provider": provider, "url": url, "models": names}


@router.post(
    "/keys/{provider}/check",
    responses=problems(KeyNotFound, KeyRefused, ProviderUnreachable, SettingsNotAllowed, body=True),
)
async def check_key(
    served: ServedDep, user: Caller, rights: Rights, provider: ProviderId, body: CheckBody | None = None
) -> KeyChecked:
    """Ask a provider for its models with a key: that uses no tokens, and tells whether the key is right. Without a key
    and an address, the ones of runs are checked."""
    given = body or CheckBody()
    await _expect_may_keep(served, user, rights, provider, given)
    url, key = await _read_given(served, user, provider, given.url, given.key)
    if key is None and not provider.startswith(f"{OWN}:"):
        raise KeyNotFound(provider=provider)
    url, names = await find_models(provider, key, url)
    return {"provider": provider, "url": url, "models": names}


@router.delete(
    "/keys/{provider}",
    dependencies=[KNOWN_ONLY],
    status_code=204,
    responses=problems(KeyNotFound, SettingsNotAllowed),
)
async def delete_key(served: ServedDep, user: Caller, provider: ProviderId) -> Response:
    """Delete a stored key and its address. Runs under way keep it."""
    if not await served.analyst.keys.remove(provider, user_id=user):
        raise KeyNotFound(provider=provider)
    return Response(status_code=204)


@router.post(
    "/check",
    dependencies=[OWNER_ONLY],
    responses=problems(ModelUnavailable, SettingsNotAllowed, body=True),
)
async def check(served: ServedDep, user: Caller, body: ModelBody) -> ModelChecked:
    """Ask a model a tiny question, and find out its context window."""
    analyst = served.analyst
    tokens, origin = await check_model(await analyst.runs.models_of(body.model, user_id=user), analyst.windows)
    return {"model": body.model, "window": tokens, "origin": origin}


async def _expect_may_keep(
    served: Served, user: str, rights: CallerRights, provider: str, given: KeyBody | CheckBody
) -> None:
    """Raise SettingsNotAllowed; RoleMissing: only administrators make the server ask an address of their choice. Raise
    KeyNotFound: there is no key of the user's own, and those of the settings are the operator's."""
    if rights.owner:
        return
    rights.expect_known()
    if not _is_vendor(provider) or (given.url is not None and read_address(given.url) not in ROWS[provider].addresses):
        rights.expect_owner()
    known = await served.analyst.keys.of(user)
    if given.key is None and (provider not in known or known[provider].key is None):
        raise KeyNotFound(provider=provider)


def _is_vendor(provider: str) -> bool:
    """Whether a provider is known, and has addresses of its own."""
    return provider in ROWS and bool(ROWS[provider].addresses)


def _hide(about: ModelProvider) -> ModelProvider:
    """What a user sees of a provider that the settings may connect."""
    return {**about, "connected": False, "url": None, "key": None, "set_at": None, "problem": None}


async def _is_environment(served: Served, user: str, provider: str, url: str) -> bool:
    """Return whether a provider is used with the key of the settings, at the address of the settings."""
    is_stored = provider in await served.analyst.keys.of(user)
    return not is_stored and url == address_of(provider, served.analyst.settings)


async def _read_given(
    served: Served, user: str, provider: str, url: str | None, key: str | None
) -> tuple[str, SecretStr | None]:
    """Return the address and the key of a request. Where it names none, return the ones that runs use; such a key only
    goes to the address that it was given for. Raises InvalidInput."""
    settings, known = served.analyst.settings, (await served.analyst.keys.of(user)).get(provider)
    row = ROWS.get(provider)
    if provider == "openai" and settings.base_url is not None:
        how = "Connect https://api.openai.com/v1 as a server of your own."
        raise InvalidInput(reason=f"LLM_BASE_URL is set, and models of OpenAI's names are asked there. {how}")
    usual = address_of(provider, settings) if row is not None and row.addresses else None
    if url is None and (url := known.url if known is not None else usual) is None:
        raise InvalidInput(reason="The server's address is missing. Give it as `url`, as in http://localhost:8000/v1.")
    url = read_address(url)
    if row is not None and row.addresses and url not in (*row.addresses, usual):
        places = ", ".join(row.addresses)
        raise InvalidInput(reason=f"{row.name} is at {places}. Connect another address as a server of your own.")
    if key is not None:
        return url, SecretStr(key)
    if known is not None and known.key is not None and Credential(known.key, known.url).belongs_to(url):
        return url, known.key
    return url, key_for(url, settings)


@dataclass(frozen=True, slots=True)
class _Row:
    """What the server says of a provider, and its connection if it has one."""

    about: ModelProvider
    connection: Connection | None = None


def _rows(settings: Settings, stored: Sequence[StoredConnection]) -> list[_Row]:
    """Return all providers, those of the settings with their keys, and the servers of a user's own."""
    by_id = {each.provider: each for each in stored}
    rows = [_row_of(row, by_id.pop(row.id, None), settings) for row in ROWS.values()]
    own = [_own_row(each) for each in by_id.values()]
    if settings.base_url is not None:
        key = key_for(settings.base_url, settings)
        about = _about(OWN, "own", urlsplit(settings.base_url).netloc.rpartition("@")[2])
        parts = urlsplit(settings.base_url)
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        about |= {"connected": True, "url": shown, "key": None if key is None else "environment"}
        own.append(_Row(about, Connection(settings.base_url, key)))
    return [*rows, *own]


def _row_of(row: Provider, stored: StoredConnection | None, settings: Settings) -> _Row:
    kind: Literal["vendor", "local"] = "vendor" if row.port is None else "local"
    about = _about(row.id, kind, row.name, row.chinese_name)
    if row.port is not None:
        about["addresses"] = [f"http://localhost:{row.port}/v1"]
    elif row.addresses:
        usual = address_of(row.id, settings)
        about["addresses"] = list(row.addresses) if usual == row.addresses[0] else [usual]
    if row.id == "openai" and settings.base_url is not None:  # which its names go to
        return _Row(about)
    if stored is not None:
        return _with_stored(about, stored)
    key = environment_key(row.id, settings) if row.addresses else None
    if key is None:
        return _Row(about)
    about |= {"connected": True, "url": address_of(row.id, settings), "key": "environment"}
    return _Row(about, Connection(address_of(row.id, settings), key))


def _own_row(stored: StoredConnection) -> _Row:
    return _with_stored(_about(stored.provider, "own", stored.provider.removeprefix(f"{OWN}:")), stored)


def _with_stored(about: ModelProvider, stored: StoredConnection) -> _Row:
    found = stored.connection
    about |= {"connected": True, "set_at": stored.set_at.isoformat()}
    if found is None:
        about |= {"key": "stored", "problem": "unreadable"}
    else:
        about |= {"key": None if found.key is None else "stored", "url": found.url}
    return _Row(about, found)


def _about(provider: str, kind: Literal["vendor", "local", "own"], name: str, chinese: str = "") -> ModelProvider:
    return {
        "provider": provider,
        "kind": kind,
        "name": name,
        "chinese_name": chinese or name,
        "addresses": [],
        "connected": False,
        "url": None,
        "key": None,
        "set_at": None,
        "problem": None,
    }


async def _list(row: _Row) -> list[str]:
    """Return the models of a provider that is connected; why it has none becomes its `problem`."""
    if row.connection is None:
        return []
    try:
        return await models_of(row.about["provider"], row.connection.key, row.connection.url)
    except KeyRefused:
        row.about["problem"] = "refused"
    except ProviderUnreachable:
        row.about["problem"] = "unreachable"
    return []
