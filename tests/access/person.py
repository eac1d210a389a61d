"""A person of whom every table has something, with one word in all of it, and another person who stays."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from longthread.access.users import User, create_user
from longthread.memory.user_memories import Memories
from longthread.model.entry import Draft
from longthread.model.memory import Statement
from longthread.model.run import RunAsker
from longthread.store import boards, log, runs
from longthread.store.boards import NewCard
from longthread.store.driver import Driver, Transaction
from longthread.store.memories import Owner
from longthread.store.queries import Sql
from longthread.store.runs import NewRun

WORD = "kanarienvogel4711"
ANALYST = "6c6f6e67-7468-5265-8164-616e616c7973"
AT = "2026-01-02T03:04:05.678000+00:00"


async def insert(tx: Transaction, table: str, **values: Any) -> None:
    names = ", ".join(f'"{name}"' for name in values)
    await tx.run(Sql(f'INSERT INTO "{table}" ({names}) VALUES ({", ".join(f":{name}" for name in values)})'), **values)


async def plant_person(store: Driver, user_id: str, word: str, number: int) -> User:
    """Add a user, and rows of that user to every table that has rows of users."""
    async with store.writing() as tx:
        user = await create_user(tx, word, user_id=user_id, email=f"{word}@example.org", password=f"hash of {word}")
        await insert(tx, "access_identities", issuer="i", subject=word, user_id=user_id, email=word, linked_at=AT)
        await insert(tx, "access_groups", id=f"g{number}", name=f"group {number}", origin="local", created_at=AT)
        await insert(tx, "access_members", group_id=f"g{number}", user_id=user_id)
        until = {"expires_at": "2999-01-01"}
        session = {"made_at": AT, "seen_at": AT, "ends_at": "2999-01-01", "agent": word, "via": "session", **until}
        await insert(tx, "access_sessions", id_hash=f"session {word}", user_id=user_id, **session)
        link = {"token_hash": f"link {word}", "kind": "reset", "created_at": AT, **until}
        await insert(tx, "access_links", user_id=user_id, **link)
        key = {"name": word, "key_hash": f"key {word}", "scopes": "[]", "made_at": AT}
        await insert(tx, "access_keys", id=f"key{number}", user_id=user_id, **key)
        for to, by in ((user_id, "somebody"), ("somebody", user_id)):
            about = {"kind": "model", "item": f"m{number}", "to_kind": "user", "may": "use", "granted_at": AT}
            await insert(tx, "access_grants", to_id=to, granted_by=by, **about)
        await insert(tx, "access_spending", user_id=user_id, day="2026-01-02", model="m", key_id=f"key{number}")
        await insert(tx, "access_tries", kind="account", subject=user.name, failures=1, until_at=AT)
        await insert(tx, "access_uploads", id=f"up{number}", user_id=user_id, name=f"{word}.csv", bytes=1, made_at=AT)
        await _plant_audit(tx, user_id, word, number)
        await _plant_project(tx, user_id, number)
        await _plant_contents(tx, user_id, word, number)
    await Memories(store).remember(Owner(user_id, ANALYST), Statement(f"The bird is {word}."))
    return user


async def _plant_audit(tx: Transaction, user_id: str, word: str, number: int) -> None:
    """What the user did, what was done to the user, and what an administrator read."""
    own = {"actor": user_id, "action": "share.make", "object": f"thread of {word}", "address": f"address {word}"}
    done = {"actor": "admin", "action": "user.change", "object": user_id}
    granted = {"actor": "admin", "action": "grant.add", "object": "m", "detail": json.dumps({"to_id": user_id})}
    read = {"actor": "admin", "action": "admin.read", "object": f"thread of {word}", "on_behalf": user_id}
    for place, row in enumerate((own, done, granted, read)):
        await insert(tx, "access_audit", id=f"{number} {place}", at=AT, via="session", **row)


async def _plant_project(tx: Transaction, user_id: str, number: int) -> None:
    """A conversation of a project that the user made, in which the user asked, queued a question and decided."""
    project, name = f"project{number}", f"of project{number}"
    await insert(tx, "access_projects", id=project, name="P", created_by=user_id, created_at=AT, updated_at=AT)
    await insert(tx, "access_project_members", project_id=project, user_id=user_id, may="use", added_at=AT)
    await log.create_thread(tx, name, user_id=f"project:{project}")
    plan = NewRun("r", "question", None, "model", "auto", 5, asker=RunAsker(user_id, f"key{number}"))
    await runs.begin(tx, name, plan, owner="worker", alive=lambda _: True)
    call = {"message_id": "m", "call_id": "c", "place": 1, "tool": "t", "description": "", "args": "{}"}
    decided = {"parameters": "{}", "asked_at": AT, "decision": "approve", "decided_by": user_id, "decided_at": AT}
    await insert(tx, "approvals", thread_id=name, run_id="r", **call, **decided)
    asked = {"question": "Next?", "model": "m", "protocol": "auto", "max_steps": 1, "asker": user_id}
    await insert(tx, "queued_questions", thread_id=name, id="q", place=1, key_id=f"key{number}", **asked)


async def _plant_contents(tx: Transaction, user_id: str, word: str, number: int) -> None:
    """A conversation with a link, a queued question and a saved result, an item, and a sealed key."""
    thread = f"thread{number}"
    await log.create_thread(tx, thread, user_id=user_id, title=word)
    await log.extend(tx, thread, [Draft(f"e{number}", "user", word)])
    link = {"token_hash": f"share {word}", "created_at": AT}
    await insert(tx, "share_links", thread_id=thread, id=f"share{number}", user_id=user_id, tip=1, **link)
    asked = {"question": word, "model": "m", "protocol": "auto", "max_steps": 1}
    await insert(tx, "queued_questions", thread_id=thread, id="q", place=1, **asked)
    board = await boards.create(tx, word, user_id=user_id)
    at = datetime.fromisoformat(AT)
    await boards.add_card(tx, board, NewCard(word, word, thread, "e", "demo", "SELECT 1", {}, {"columns": ["n"]}, at))
    shown = {"token_hash": f"board {word}", "shown": f'{{"title": "{word}"}}', "created_at": AT}
    await insert(tx, "board_links", id=f"link{number}", board_id=board.id, user_id=user_id, **shown)
    about = {"fields": "[]", "form": 1, "words": 1, "embedded": "", "created_at": AT, "updated_at": AT}
    await insert(tx, "items", user_id=user_id, namespace="n", key="k", value=f'{{"what": "{word}"}}', **about)
    await insert(tx, "provider_keys", user_id=user_id, provider="openai", sealed=word.encode(), set_at=AT)
