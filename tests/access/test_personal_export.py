"""A person's data as one file: what is in it, and that nothing of others and no secret is."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from tests.access.person import WORD, plant_person

from longthread.access.personal_export import EXPORTED, LEFT_OUT, PAGE_ROWS, export_person
from longthread.access.uploads import note_upload
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.tables import read_tables
from longthread.store.transfer.archive_reader import ImportTarget, import_threads

OTHER = "nachtigall"


async def export(store: Driver, user_id: str) -> dict[str, bytes]:
    file = io.BytesIO()
    async with store.reading() as tx:
        await export_person(tx, user_id, file)
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def rows(member: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in member.splitlines()]


async def test_an_export_has_all_of_the_person_and_nothing_of_others(store: Driver) -> None:
    await plant_person(store, "u1", WORD, 1)
    await plant_person(store, "u2", OTHER, 2)
    found = await export(store, "u1")
    account = json.loads(found["account.json"])
    assert (account["id"], account["name"], account["email"]) == ("u1", WORD, f"{WORD}@example.org")
    assert (account["conversations"], account["damaged_conversations"]) == (1, {})
    assert {name for name, member in found.items() if not member} <= {"memory_sources.jsonl"}
    assert set(found) == {
        *("account.json", "conversations.jsonl", "audit.jsonl"),
        *(f"{each.member}.jsonl" for each in EXPORTED),
    }
    for name in ("memories", "items", "boards", "board_cards", "queued_questions", "uploads"):
        assert WORD in json.dumps(rows(found[f"{name}.jsonl"])), name
    everything = b"".join(found.values())
    assert OTHER.encode() not in everything
    for secret in ("hash of", "session ", "link ", "key ", "share ", "board "):
        assert f"{secret}{WORD}".encode() not in everything, secret
    assert len(rows(found["audit.jsonl"])) == 3
    assert [each["id"] for each in rows(found["keys.jsonl"])] == ["key1"]


async def test_its_conversations_can_be_imported(store: Driver, other_address: str) -> None:
    from longthread.store.open import open_store

    await plant_person(store, "u1", WORD, 1)
    file = io.BytesIO((await export(store, "u1"))["conversations.jsonl"])
    async with open_store(other_address) as other:
        into = ImportTarget("u1", takes_over=False, thread_id=None)
        outcome = await import_threads(other, file, "export", into, lambda *_: None)
        assert outcome.written == 1
        async with other.reading() as tx:
            assert (await log.find_thread(tx, "thread1", user_id="u1")).title == WORD


async def test_many_rows_are_all_there(store: Driver) -> None:
    ids = [f"{number:04}" for number in range(2 * PAGE_ROWS + 1)]
    async with store.writing() as tx:
        for each in ids:
            await note_upload(tx, each, "a.csv", 1, user_id="u1")
    assert [each["id"] for each in rows((await export(store, "u1"))["uploads.jsonl"])] == ids


async def test_each_table_with_rows_of_users_is_exported_or_left_out_on_purpose(store: Driver) -> None:
    async with store.reading() as tx:
        tables = (await read_tables(tx)).all
    of_users = {each.name for each in tables if "user_id" in each.by_name}
    assert of_users - LEFT_OUT == {each.table for each in EXPORTED if each.condition == '"user_id" = :user_id'}


async def test_of_a_server_without_login_there_are_the_users_conversations(store: Driver) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="default")
    found = await export(store, "default")
    assert json.loads(found["account.json"])["id"] == "default"
    assert b'"t"' in found["conversations.jsonl"]
