"""Passwords: hashed with argon2id, checked in a thread, and slowed down after wrong ones by account and address."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from longthread.errors import LoginThrottled, PasswordRefused
from longthread.store.driver import Transaction
from longthread.store.log import now

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST, LONGEST = 10, 1_000
"""Characters of a password."""
_TOGETHER = 2
"""How many hashes are computed at once: each takes 19 MiB and a processor."""
FREE_TRIES = 5
"""Wrong passwords in a row before the first wait."""
LONGEST_WAITS = {"account": timedelta(seconds=30), "address": timedelta(minutes=15)}
"""An account waits shorter: others may fail at it to keep its user out."""
_FORGOTTEN = timedelta(days=1)


def validate_password(password: str, name: str) -> None:
    """Raise PasswordRefused: a new password is too short or too long, or is the user's name."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise PasswordRefused(reason=f"It has {len(password)} characters, and {SHORTEST} to {LONGEST:,} are allowed.")
    if password.casefold().strip() == name.casefold():
        raise PasswordRefused(reason="It is your name.")


async def hash_password(password: str) -> str:
    return await asyncio.get_running_loop().run_in_executor(_threads(), _hasher().hash, password)


async def check_password(stored: str | None, password: str) -> tuple[bool, str | None]:
    """Return whether a password is right, and a new hash of it if the stored one is of former parameters.

    Without a stored hash (an unknown name, or a user who logs in elsewhere), it takes the same time.
    """
    from argon2.exceptions import InvalidHashError, VerificationError

    def verify() -> tuple[bool, str | None]:
        hasher, nobodys = _hasher(), _nobodys_hash()  # a process makes it at its first login, whatever the name
        try:
            hasher.verify(stored or nobodys, password[: LONGEST + 1])
        except (VerificationError, InvalidHashError):
            return False, None
        if stored is None:
            return False, None
        return True, hasher.hash(password) if hasher.check_needs_rehash(stored) else None

    return await asyncio.get_running_loop().run_in_executor(_threads(), verify)


async def expect_tries_left(tx: Transaction, account: str, address: str) -> None:
    """Raise LoginThrottled: this account or this address must wait after wrong passwords."""
    rows = await tx.fetch("select_tries", account=account, address=address)
    latest = max((datetime.fromisoformat(row["until_at"]) for row in rows), default=None)
    left = (latest - datetime.now(UTC)).total_seconds() if latest is not None else 0
    if left > 0:
        raise LoginThrottled(seconds=math.ceil(left))


async def note_failure(tx: Transaction, account: str, address: str) -> None:
    """Count a wrong password for the account and the address: from the sixth in a row each waits twice as long. An
    address that is not known ("") would be of many: it is not counted. Who is logged in is counted without one."""
    subjects = {"account": account, **({"address": address} if address else {})}
    for kind, subject in subjects.items():
        await tx.run("save_try", kind=kind, subject=subject, now=now())
    counts: Mapping[str, int] = {
        row["kind"]: int(row["failures"]) for row in await tx.fetch("select_tries", account=account, address=address)
    }
    for kind, subject in subjects.items():
        if (over := counts[kind] - FREE_TRIES) >= 0:
            wait = min(timedelta(seconds=2 ** min(over, 20)), LONGEST_WAITS[kind])
            until = (datetime.now(UTC) + wait).isoformat(timespec="microseconds")
            await tx.run("update_try", kind=kind, subject=subject, until_at=until)
    before = (datetime.now(UTC) - _FORGOTTEN).isoformat(timespec="microseconds")
    await tx.run("delete_old_tries", before=before)


async def forget_failures(tx: Transaction, account: str, address: str | None) -> None:
    """Begin again for an account whose password was right, and take back what this try counted for its address: others
    may have failed from there."""
    await tx.run("delete_tries", kind="account", subject=account)
    if address:
        await tx.run("take_back_try", subject=address, now=now())


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_TOGETHER, thread_name_prefix="password")


@cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


@cache
def _nobodys_hash() -> str:
    return _hasher().hash("the password of a user who does not exist")
