"""Addresses of sources in the catalog, with `${NAME}` in place of secrets."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from longthread.errors import InvalidInput, SecretUnusable
from longthread.tools.analysis.address import is_offered, is_url, parse_url, redact_spec, same_source, secrets_of
from longthread.tools.secrets import read_secrets

_PLACE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}")
_HIDDEN = "***"
"""Stands in place of a secret."""
_HOLDS_ONE = (
    "It holds a password, and whoever reads the catalog would read that. Write ${NAME} in its place, with a name of "
    "your own, and set LONGTHREAD_SECRET_NAME in the environment or in .env where Longthread runs; or leave it out, "
    "for PGPASSWORD, MYSQL_PWD or a password file."
)


def normalize_address(address: str, folder: Path | None = None) -> str:
    """Return an address for the catalog; a relative path begins in `folder`. Raises InvalidInput: it cannot be parsed,
    begins in the home of an unknown user, or has a password, which the message does not show."""
    address = address.strip()
    if _holds_secret(address):
        raise InvalidInput(reason=_HOLDS_ONE)
    if is_url(address):
        parse_url(_PLACE.sub("x", address))
        return address
    if is_offered(address, folder or Path()):
        return address
    try:
        path = Path(address).expanduser()
    except RuntimeError as error:
        raise InvalidInput(reason=f"{address} begins in the home of a user that this machine does not have.") from error
    return str(path if path.is_absolute() else (folder or Path.cwd()) / path)


def public(address: str) -> str:
    """An address for people, without a password that another program may have written."""
    return redact_spec(address) if _holds_secret(address) else address


def fill_in_secrets(address: str) -> str:
    """An address with its secrets, to open it. Raises SecretUnusable."""
    names = _PLACE.findall(address)
    if not names:
        return address
    secrets = read_secrets(names)
    return secrets.filled_in_url(address) if is_url(address) else secrets.fill(address)


def withheld(address: str, remembered: str) -> bool:
    """Whether an address has secrets, and without them equals the one that a thread stores."""
    if not _PLACE.search(address) and not _holds_secret(address):
        return False
    with suppress(SecretUnusable):
        return same_source(fill_in_secrets(address), remembered)
    return same_source(address, remembered)


def is_of(address: str, remembered: str) -> bool:
    """Whether an address of the catalog is the one that a thread stores."""
    return withheld(address, remembered) or same_source(address, remembered)


def _holds_secret(address: str) -> bool:
    bare = _PLACE.sub("", address)
    if not is_url(bare):
        return _HIDDEN in redact_spec(bare)
    try:
        url = parse_url(bare)
    except InvalidInput:
        return True  # the password could be anywhere
    options = [one for values in url.query.values() for one in values]
    return bool(secrets_of(url)) or any(_HIDDEN in redact_spec(f"./{option}") for option in options)
