"""API keys: how they are made and revoked, and whose key a request carries. Of a key only a hash is stored."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import string
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote_plus

from longthread.access import audit
from longthread.access.principal import KeyLimits, KeyScope, Principal, parse_scopes
from longthread.access.users import SpendingLimit, User, find_user, load_principal
from longthread.errors import ApiKeyNotFound, InvalidInput, SeveralKeys
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now

PREFIX = "lt_"
"""What each key begins with, so that a provider's key is not taken for one, and secret scanners find it."""
AUTHORIZATION, OWN_HEADER = b"authorization", b"x-longthread-key"
HEADERS = (AUTHORIZATION, b"x-api-key", b"x-goog-api-key", b"api-key", OWN_HEADER)
"""The headers that may carry a key."""
LONGEST_NAME, MOST_LIMITS = 200, 200
MOST_LIMIT_CHARACTERS = 10_000
"""Of all names that a key is limited to: they are read with each request of the key."""
MOST_KEYS = 100
"""Keys of a user that are not revoked."""
_ID_LETTERS, _ID_LENGTH, _SECRET_BYTES = string.ascii_lowercase + string.digits, 8, 32
_FORM = re.compile(r"lt_([a-z0-9]{8})_[A-Za-z0-9_-]{43}")
_NOTED = timedelta(minutes=5)
"""How often the use of a key is written."""
RawHeaders = Iterable[tuple[bytes, bytes]]
"""The headers of a request as ASGI has them; the names may be of any case."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a new key is for, and its limits. None: no limit of the key's own."""

    name: str
    scopes: Collection[str]
    agents: Collection[str] | None = None
    models: Collection[str] | None = None
    sources: Collection[str] | None = None
    expires_at: datetime | None = None
    budget: SpendingLimit | None = None
    requests_per_minute: int | None = None
    parallel: int | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of a user. It works until it expires or is revoked, and while its user is active."""

    user_id: str
    user_name: str
    name: str
    limits: KeyLimits
    expires_at: datetime | None
    budget: SpendingLimit | None
    made_at: datetime
    seen_at: datetime | None
    revoked_at: datetime | None

    @property
    def id(self) -> str:
        return self.limits.id

    def to_json(self) -> dict[str, Any]:
        """Return what may be seen of the key, which is all but its secret."""
        limits = self.limits
        names = {"agents": limits.agents, "models": limits.models, "sources": limits.sources}
        moments = {"expires_at": self.expires_at, "made_at": self.made_at, "seen_at": self.seen_at}
        return {
            "id": limits.id,
            "name": self.name,
            "user": self.user_name,
            "scopes": sorted(limits.scopes),
            **{name: None if given is None else sorted(given) for name, given in names.items()},
            "budget": None if self.budget is None else asdict(self.budget),
            "requests_per_minute": limits.requests_per_minute,
            "parallel": limits.parallel,
            **{name: None if given is None else given.isoformat() for name, given in moments.items()},
        }

    def works_at(self, moment: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or moment < self.expires_at)


def validate_key(new: NewKey) -> frozenset[KeyScope]:
    """Return the scopes of a new key. Raises InvalidInput: it would be of no use, or its limits are wrong."""
    if not new.name.strip() or len(new.name) > LONGEST_NAME or any(unicodedata.category(c)[0] == "C" for c in new.name):
        raise InvalidInput(reason=f"A key's name has 1 to {LONGEST_NAME} characters, without control characters.")
    try:
        scopes = parse_scopes(new.scopes)
    except ValueError as error:
        raise InvalidInput(reason=f"{error}.") from None
    if not scopes:
        raise InvalidInput(reason="A key needs a scope: it may do nothing without one.")
    for what, names in {"agents": new.agents, "models": new.models, "sources": new.sources}.items():
        if names is not None and (not names or len(names) > MOST_LIMITS or not all(names)):
            raise InvalidInput(reason=f"Name 1 to {MOST_LIMITS} {what}, or leave them out: then all are allowed.")
    named = sum(len(name) for names in (new.agents, new.models, new.sources) for name in names or ())
    if named > MOST_LIMIT_CHARACTERS:
        reason = f"The names that a key is limited to have at most {MOST_LIMIT_CHARACTERS:,} characters together."
        raise InvalidInput(reason=reason)
    if new.expires_at is not None and new.expires_at <= datetime.now(UTC):
        raise InvalidInput(reason="The key would have expired already.")
    if new.budget is not None and not 0 < new.budget.amount < float("inf"):
        raise InvalidInput(reason="A budget is a number above 0.")
    if any(number is not None and number < 1 for number in (new.requests_per_minute, new.parallel)):
        raise InvalidInput(reason="Requests a minute and runs at once are whole numbers from 1 on.")
    return scopes


async def create_key(tx: Transaction, user: User, new: NewKey) -> tuple[ApiKey, str]:
    """Return a new key, and its text, which can never be read again. Raises InvalidInput."""
    scopes = validate_key(new)
    if len(await list_keys(tx, user.id)) >= MOST_KEYS:
        raise InvalidInput(reason=f"A user has at most {MOST_KEYS} keys. Revoke those that nothing uses any more.")
    budget = new.budget or SpendingLimit(0, "tokens", "month")
    while True:
        key_id = "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))
        text = f"{PREFIX}{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        written = await tx.run(
            "insert_key",
            id=key_id,
            user_id=user.id,
            name=new.name.strip(),
            key_hash=_hash_key(text),
            scopes=json.dumps(sorted(scopes)),
            agents=_dump_names(new.agents),
            models=_dump_names(new.models),
            sources=_dump_names(new.sources),
            expires_at=None if new.expires_at is None else _format_moment(new.expires_at),
            budget=None if new.budget is None else budget.amount,
            budget_unit=budget.unit,
            budget_period=budget.period,
            requests_per_minute=new.requests_per_minute,
            parallel=new.parallel,
            now=now(),
        )
        if written:  # else another key has this id
            await audit.note(tx, "key.make", key_id, user=user.id, scopes=" ".join(sorted(scopes)))
            return await find_key(tx, key_id), text


async def list_keys(tx: Transaction, user_id: str | None = None) -> list[ApiKey]:
    """Return a user's keys that are not revoked, the oldest first; without a user those of all."""
    rows = await tx.fetch("select_keys") if user_id is None else await tx.fetch("select_keys_of_user", user_id=user_id)
    return [_read_key(row) for row in rows]


async def find_key(tx: Transaction, key_id: str, user_id: str | None = None) -> ApiKey:
    """Return a key that is not revoked, of a user or of anybody. Raises ApiKeyNotFound."""
    row = await one(tx, "select_key", id=key_id)
    if row is None or row["revoked_at"] is not None or user_id not in (None, row["user_id"]):
        raise ApiKeyNotFound(key=key_id)
    return _read_key(row)


async def revoke_key(tx: Transaction, key_id: str, user_id: str | None = None) -> ApiKey:
    """Revoke a key of a user or of anybody, and return it. Raises ApiKeyNotFound."""
    key = await find_key(tx, key_id, user_id)
    if not await tx.run("revoke_key", id=key_id, user_id=key.user_id, now=now()):
        raise ApiKeyNotFound(key=key_id)
    await audit.note(tx, "key.revoke", key_id, user=key.user_id)
    return key


def find_credential(headers: RawHeaders) -> str | None:
    """Return the key of ours that a request carries, whatever header has it; None: it carries none.

    All that begins as a key does counts, also what is none: it is never taken for a provider's. Raises SeveralKeys:
    two keys of ours would leave open which one counts.
    """
    found = {text for name, value in headers if (text := _own_key(name.lower(), value)) is not None}
    if len(found) > 1:
        raise SeveralKeys
    return next(iter(found), None)


def has_credential(headers: RawHeaders) -> bool:
    """Whether a request carries a key of ours, or several."""
    return any(_own_key(name.lower(), value) is not None for name, value in headers)


def remove_credential(headers: RawHeaders) -> list[tuple[bytes, bytes]]:
    """Return a request's headers without its keys of ours: no provider may see them."""
    return [(name, value) for name, value in headers if _own_key(name.lower(), value) is None]


def is_in_address(path: str, query: bytes) -> bool:
    """Whether the address of a request has a key of ours."""
    return any(_FORM.search(each) for each in (path, unquote_plus(query.decode("latin-1"))))


async def find_key_principal(tx: Transaction, credential: str) -> Principal | None:
    """Return the caller that a key stands for; None: there is no such key, it works no more, or its user is not active.

    A wrong secret of a known key costs the same as an unknown key.
    """
    form = _FORM.fullmatch(credential)
    row = await one(tx, "select_key", id=form[1] if form else "")
    stored = row["key_hash"] if row is not None else _hash_key("")
    if not hmac.compare_digest(stored, _hash_key(credential)) or row is None:
        return None
    key, user = _read_key(row), await find_user(tx, row["user_id"])
    if user.status != "active" or not key.works_at(datetime.now(UTC)):
        return None
    return await load_principal(tx, user, "key", key=key.limits)


async def names_of_keys(tx: Transaction) -> dict[str, str]:
    """Return the names of all keys, revoked ones too, by their ids."""
    return {row["id"]: row["name"] for row in await tx.fetch("select_names_of_keys")}


async def count_runs_of_key(tx: Transaction, key_id: str) -> int:
    """Return how many runs that were asked for with a key are executed, or are to be."""
    [row] = await tx.fetch("count_runs_of_key", key_id=key_id)
    return int(row["n"])


async def count_servers(tx: Transaction) -> int:
    """Return how many processes share the requests of a key: all that execute runs on this store, at least one."""
    [row] = await tx.fetch("count_workers")
    return max(1, int(row["n"]))


async def touch_key(tx: Transaction, key_id: str) -> None:
    """Note that a key is in use, at most once in five minutes."""
    before = _format_moment(datetime.now(UTC) - _NOTED)
    await tx.run("touch_key", id=key_id, now=now(), before=before)


def _own_key(name: bytes, value: bytes) -> str | None:
    """Return the key of ours in a header; None: it has none."""
    if name not in HEADERS:
        return None
    text = value.decode("latin-1").strip()
    if name == AUTHORIZATION:
        text = text.rpartition(" ")[2]  # after the scheme, which is Bearer
    return text if text.startswith(PREFIX) or (name == OWN_HEADER and text) else None


def _hash_key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _dump_names(names: Collection[str] | None) -> str | None:
    return None if names is None else json.dumps(sorted(set(names)), ensure_ascii=False)


def _format_moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _read_names(text: str | None) -> frozenset[str] | None:
    names: Sequence[str] | None = None if text is None else json.loads(text)
    return None if names is None else frozenset(names)


def _read_moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _read_key(row: Row) -> ApiKey:
    amount = row["budget"]
    return ApiKey(
        user_id=row["user_id"],
        user_name=row["user_name"],
        name=row["name"],
        limits=KeyLimits(
            id=row["id"],
            scopes=parse_scopes(json.loads(row["scopes"])),
            agents=_read_names(row["agents"]),
            models=_read_names(row["models"]),
            sources=_read_names(row["sources"]),
            requests_per_minute=row["requests_per_minute"],
            parallel=row["parallel"],
        ),
        expires_at=_read_moment(row["expires_at"]),
        budget=None if amount is None else SpendingLimit(float(amount), row["budget_unit"], row["budget_period"]),
        made_at=datetime.fromisoformat(row["made_at"]),
        seen_at=_read_moment(row["seen_at"]),
        revoked_at=_read_moment(row["revoked_at"]),
    )
