"""A user's rows outside of conversations and memories: how they go, and where a pseudonym stays."""

from __future__ import annotations

from longthread.access import audit, sessions, users
from longthread.access.users import User
from longthread.errors import UserNotFound
from longthread.store.driver import Transaction

_REPLACED = {
    "access_grants": "forget_granter",
    "access_projects": "forget_project_maker",
    "runs": "forget_asker",
    "queued_questions": "forget_queued_asker",
    "approvals": "forget_decider",
}
"""Tables that others keep, and the queries that leave a pseudonym there."""


_EMPTIED = {"access_audit", "access_grants", "access_links", "access_sessions", "access_tries", "access_users"}
"""Tables where rows of the user were deleted or changed, now or when the user was shut out."""


async def shut_out(tx: Transaction, user_id: str) -> None:
    """End a user's logins for ever, so that nothing is written while the rest is deleted; a user of a server without
    login has none. Raises LastAdmin."""
    user = await _find_user(tx, user_id)
    if user is not None:
        await users.update_user(tx, user, status="disabled")
        await sessions.end_sessions(tx, user_id)


async def erase_access(tx: Transaction, user_id: str) -> set[str]:
    """Delete a user, with what was granted to the user, and return the tables that changed. Where others keep who did
    something, a pseudonym is left. Of a server without login there is nothing."""
    user = await _find_user(tx, user_id)
    if user is None:
        return set()
    await audit.note(tx, "user.forget", user_id)
    await audit.forget_actor(tx, user_id)
    about = {"user_id": user_id, "pseudonym": await audit.make_pseudonym(tx, user_id)}
    changed = {table for table, query in _REPLACED.items() if await tx.run(query, **about)}
    await tx.run("delete_grants_to_user", user_id=user_id)
    await tx.run("delete_tries", kind="account", subject=user.name)
    await tx.run("delete_user", user_id=user_id)
    return changed | _EMPTIED


async def _find_user(tx: Transaction, user_id: str) -> User | None:
    try:
        return await users.find_user(tx, user_id)
    except UserNotFound:
        return None
