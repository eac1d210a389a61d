"""What a browser carries through a login at a provider: sealed, so that only a server of the
store can make it, and of use for ten minutes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

import orjson

from longthread.settings import Settings
from longthread.store.driver import Driver, Transaction, one
from longthread.store.log import now

LASTS = timedelta(minutes=10)
_SECRET = "login"
_PURPOSE = b"longthread login"
_NONCE = 12
"""Bytes. AES-GCM wants each only once under a key: random ones do for four billion logins."""
LONGEST_STATE = 4_096
_LONGEST_PATH = 500


@dataclass(frozen=True, slots=True)
class LoginState:
    """A login that has begun at `issuer`. `path` is the page that it leads to."""

    issuer: str
    state: str
    nonce: str
    verifier: str
    path: str
    until: float

    @property
    def challenge(self) -> str:
        """What the issuer is shown of the verifier (PKCE, S256)."""
        return _encode(hashlib.sha256(self.verifier.encode()).digest())


def new_login(issuer: str, path: str) -> LoginState:
    until = (datetime.now(UTC) + LASTS).timestamp()
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    return LoginState(issuer, state, nonce, verifier, own_path(path), until)


def own_path(path: str) -> str:
    """Return a path of this server's page; `/` for what could lead elsewhere."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and len(path) <= _LONGEST_PATH
    return path if is_own and path.isascii() and path.isprintable() else "/"


async def login_key(store: Driver, settings: Settings) -> bytes:
    """Return the key that seals logins: of LONGTHREAD_SECRET_KEY, or of a secret that all servers of the store share,
    which is made when it is first needed."""
    if settings.secret_key is not None:
        return hashlib.sha256(_PURPOSE + settings.secret_key.get_secret_value().encode()).digest()
    async with store.reading() as tx:
        found = await _find_secret(tx)
    if found is None:
        async with store.writing() as tx:
            await tx.run("insert_secret", name=_SECRET, secret=secrets.token_urlsafe(32), now=now())
            found = await _find_secret(tx)
    assert found is not None
    return hashlib.sha256(_PURPOSE + found.encode()).digest()


async def _find_secret(tx: Transaction) -> str | None:
    row = await one(tx, "select_secret", name=_SECRET)
    return None if row is None else str(row["secret"])


def seal_login(key: bytes, login: LoginState) -> str:
    """Return a login as text for a cookie."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE)
    return _encode(nonce + AESGCM(key).encrypt(nonce, orjson.dumps(asdict(login)), _PURPOSE))


def unseal_login(key: bytes, sealed: str) -> LoginState | None:
    """Return the login; None if it was sealed with another key, changed, or began too long ago."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(sealed) > LONGEST_STATE:
        return None
    try:
        raw = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
        login = LoginState(**orjson.loads(AESGCM(key).decrypt(raw[:_NONCE], raw[_NONCE:], _PURPOSE)))
    except (InvalidTag, binascii.Error, ValueError, TypeError):
        return None
    if login.until < datetime.now(UTC).timestamp():
        return None
    return replace(login, path=own_path(login.path))


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
