"""Messages of an application's own classes, where LangGraph makes only objects of classes that it was told of."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.warm import warm

from longthread.errors import ValueDamaged
from longthread.langgraph.message_codec import message_of
from longthread.store import log
from longthread.store.open import open_store

pytestmark = pytest.mark.one_backend

OURS = [["Own", "x", "hello", "None", "glad"], ["ToolMessage", "z", "t", "<Note.IN: 'in'>", None]]


class Strictly(Protocol):
    """What a process of its own finds."""

    def __call__(self, address: str, *args: str, strict: bool = True) -> Any: ...


@pytest.fixture(scope="module")
def strict_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The warmed commands where LangGraph was told to be strict."""
    folder = tmp_path_factory.mktemp("strict")
    with warm(folder, "longthread.langgraph", LANGGRAPH_STRICT_MSGPACK="true") as commands:
        yield commands


@pytest.fixture
def strictly(strict_commands: Path, warmed: Path) -> Strictly:
    """Runs `strictly.py` on a store, in a process that is strict, or in one that is not."""

    def run(address: str, *args: str, strict: bool = True) -> Any:
        python = (strict_commands if strict else warmed) / "python"
        command = [str(python), "-m", "tests.processes.strictly", address, *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_what_the_schema_names_comes_back_as_the_stock_saver_gives_it(
    store_address: str, tmp_path: Path, strictly: Strictly
) -> None:
    stock = str(tmp_path / "of.stock")
    theirs = [strictly(stock, what)["Wide"] for what in ("write", "read")]
    ours = [strictly(store_address, what) for what in ("write", "read")]
    assert [each["Wide"] for each in ours] == theirs
    assert ours[0]["Wide"] == [OURS, [["Own", "w", "two", "None", "calm"]]]


def test_what_no_schema_names_is_told_in_the_process_that_wrote_it_too(store_address: str, strictly: Strictly) -> None:
    for found in (strictly(store_address, "write"), strictly(store_address, "read")):
        for schema in ("WithNote", "Narrow"):
            name, said = found[schema]
            assert name == "ValueDamaged"
            assert "its class is not there or not allowed" in said
            assert "If the application's serializer or classes are other ones" in said
        assert found["Wide"][0] == OURS


def test_where_all_classes_are_allowed_every_schema_gives_them(store_address: str, strictly: Strictly) -> None:
    for what in ("write", "read"):
        found = strictly(store_address, what, strict=False)
        assert [each[0] for each in found.values()] == [OURS, OURS, OURS]


async def test_graphs_over_one_saver_are_given_what_each_allows(
    store_address: str, tmp_path: Path, strictly: Strictly
) -> None:
    found = strictly(store_address, "allowlists")
    assert found[:3] == strictly(str(tmp_path / "of.stock"), "allowlists")[:3]
    artifacts = [messages[0][3] for messages, _ in found]
    assert artifacts == ["'in'", "<Note.IN: 'in'>", "'in'", "<Note.IN: 'in'>"]
    async with open_store(store_address) as store, store.reading() as tx:
        # Who went on from what it could read has not written it anew.
        assert [entry.text for entry in await log.entries_between(tx, "t", 1, 9)] == ["t", "more"]


async def test_entries_are_there_for_those_who_have_no_such_class(store_address: str, strictly: Strictly) -> None:
    strictly(store_address, "write")
    async with open_store(store_address) as store, store.reading() as tx:
        entries = await log.branch(tx, "t", (await log.position(tx, "t"))[0])
    assert [(entry.role, entry.text) for entry in entries] == [("user", "hello"), ("tool", "t")]
    with pytest.raises(ValueDamaged, match="entry 1 of thread t cannot be read: .*its class is not there"):
        message_of(entries[0])
