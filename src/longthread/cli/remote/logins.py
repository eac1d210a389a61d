"""The servers that a person has logged in to, and their API keys.

A key is in the system's keyring if the package `keyring` is installed and has one, else in the file, which its owner
alone can read. It is sent to the address that it was given for, and to no other.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from longthread.errors import InvalidInput, NotLoggedIn, ServerAddressRefused, ServerKeyUnreadable
from longthread.errors.base import convert_errors
from longthread.settings import data_folder, login_key

FILE = "servers.json"
"""The file of the logins, in the data folder."""
_SERVICE = "longthread"
"""The name under which the keyring has the keys."""
_VISIBLE = range(0x21, 0x7F)
KeyPlace = Literal["keyring", "file", "none"]


class ServerLogin(NamedTuple):
    """A server, the user there, and the key that is sent; empty for a server in local mode, which takes none."""

    address: str
    user: str
    key: str


@dataclass
class _KeptLogin:
    user: str
    place: KeyPlace
    key: str = field(default="", repr=False)


def normalize_address(given: str, *, insecure: bool = False) -> str:
    """Return the address of a server without what is not a part of it. A name without a scheme is one of https.

    Raises:
        ServerAddressRefused: it is none, or a key would cross a network unencrypted.
    """
    text = given.strip() if "://" in given else f"https://{given.strip()}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ServerAddressRefused(address=given, reason=f"{error}.") from None
    if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment or " " in text:
        raise ServerAddressRefused(address=given, reason="give an address such as https://longthread.example.com.")
    if parts.username is not None:
        reason = "leave the name and the password out; the key is asked for."
        raise ServerAddressRefused(address=f"{parts.scheme}://{host}", reason=reason)
    if parts.scheme == "http" and not (insecure or is_loopback(host)):
        reason = (
            "anyone on the way could read the key and your conversations. Use https://, or give --insecure-http to "
            "`longthread login` if the network between is yours alone."
        )
        raise ServerAddressRefused(address=given, reason=reason)
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def check_key(text: str) -> str:
    """Return a key without the white space around it. Raises InvalidInput: it is none."""
    key = text.strip()
    if not key or any(ord(each) not in _VISIBLE for each in key):
        raise InvalidInput(reason="That is no API key. It has letters, digits and signs, and no spaces: lt_….")
    return key


class Logins:
    """The logins of the user of this machine."""

    def __init__(self) -> None:
        self._path = data_folder() / FILE
        self._current, self._kept = self._read()

    @property
    def current(self) -> str | None:
        """The address of the server that commands use; None where they use a store."""
        return self._current

    def resolve_address(self, given: str) -> str:
        """Return the address of a server that the command line names. Raises ServerAddressRefused."""
        with contextlib.suppress(ServerAddressRefused):
            if (address := normalize_address(given, insecure=True)) in self._kept:
                return address  # it was allowed when the key was given
        return normalize_address(given)

    def find(self, address: str, *, named: bool) -> ServerLogin:
        """Return the login of a server. The key of LONGTHREAD_KEY goes only to one that the command itself has `named`.

        Raises:
            NotLoggedIn: there is neither.
            ServerKeyUnreadable: the keyring does not give the key out.
        """
        kept = self._kept.get(address)
        if named and (given := login_key()) is not None:
            return ServerLogin(address, kept.user if kept else "", check_key(given.get_secret_value()))
        if kept is None:
            raise NotLoggedIn(server=address)
        return ServerLogin(address, kept.user, self._read_key(address, kept))

    def keep(self, login: ServerLogin) -> KeyPlace:
        """Keep a login, and use its server from now on. Returns where its key is."""
        place: KeyPlace = "none" if not login.key else "keyring" if _store_in_keyring(login) else "file"
        if place != "keyring":
            _delete_from_keyring(login.address)
        self._kept[login.address] = _KeptLogin(login.user, place, login.key if place == "file" else "")
        self._current = login.address
        self._write()
        return place

    def forget(self, address: str) -> bool:
        """Delete a login and its key; if it was the current one, commands use the store of this machine from then on.
        Returns whether there was such a login."""
        kept = self._kept.pop(address, None)
        if kept is None:
            return False
        if kept.place == "keyring":
            _delete_from_keyring(address)
        self._current = None if self._current == address else self._current
        self._write()
        return True

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def _read_key(self, address: str, kept: _KeptLogin) -> str:
        if kept.place != "keyring":
            return kept.key
        with _keyring_errors(address):
            import keyring

            key = keyring.get_password(_SERVICE, address)
        if not key:
            raise ServerKeyUnreadable(server=address, reason="the keyring has none.")
        return key

    def _read(self) -> tuple[str | None, dict[str, _KeptLogin]]:
        try:
            data: dict[str, Any] = json.loads(self._path.read_text("utf-8"))
            kept = {address: _KeptLogin(**each) for address, each in data["servers"].items()}
        except FileNotFoundError:
            return None, {}
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            reason = f"{self._path} cannot be read: {type(error).__name__}. Delete it, and log in again."
            raise InvalidInput(reason=reason) from None
        return data.get("current"), kept

    def _write(self) -> None:
        servers = {address: vars(each) for address, each in self._kept.items()}
        text = json.dumps({"current": self._current, "servers": servers}, ensure_ascii=False, indent=1)
        part = self._path.with_name(f".{FILE}.{os.getpid()}.part")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        try:  # no moment at which others can read it
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._path)
        finally:
            part.unlink(missing_ok=True)


def _store_in_keyring(login: ServerLogin) -> bool:
    """Store a key in the system's keyring. Returns whether it is there: there may be none, or none that keeps it."""
    with contextlib.suppress(ServerKeyUnreadable, ModuleNotFoundError), _keyring_errors(login.address):
        import keyring

        keyring.set_password(_SERVICE, login.address, login.key)
        return keyring.get_password(_SERVICE, login.address) == login.key
    return False


def _delete_from_keyring(address: str) -> None:
    with contextlib.suppress(ServerKeyUnreadable, ModuleNotFoundError), _keyring_errors(address):
        import keyring

        keyring.delete_password(_SERVICE, address)


@contextlib.contextmanager
def _keyring_errors(address: str) -> Iterator[None]:
    """Raise ServerKeyUnreadable for whatever a keyring raises."""
    with convert_errors(
        lambda error: ServerKeyUnreadable(server=address, reason=f"{str(error) or type(error).__name__}.")
    ):
        yield
