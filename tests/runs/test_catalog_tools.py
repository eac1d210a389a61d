"""Document 002's own examples, applied and used by an agent: a request to a server, Python, a query."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.analysts import OpenAnalyst
from tests.script import call, finish
from tests.tools.api.conftest import Server, answer, server

from longthread import Catalog
from longthread.errors import CatalogInvalid, DefinitionNotFound
from longthread.runs.shared import RunHandle
from longthread.store import boards, log, runs
from longthread.store.boards import NewCard
from longthread.testing import ScriptedChatModel
from longthread.tools.analysis.source import Source
from longthread.tools.sources import Opener

pytestmark = pytest.mark.one_backend

__all__ = ["server"]

EXAMPLES = Path(__file__).parents[1] / "tools" / "catalog" / "document002.yaml"


@pytest.fixture
def documents(tmp_path: Path, server: Server) -> list[dict[str, Any]]:
    """The examples, with addresses of this machine."""
    file = tmp_path / "main.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE data (content TEXT)")
        connection.executemany("INSERT INTO data VALUES (?)", [("AI agents",), ("50% off",), ("other",)])
    connection.close()
    found = [data for data in yaml.safe_load_all(EXAMPLES.read_text("utf-8")) if data]
    by_name = {data["name"]: data for data in found}
    by_name["main"]["address"] = str(file)
    by_name["search_web"]["implementation"] |= {"endpoint": f"{server.url}/search", "allow_private": True}
    by_name["researcher"]["config"] = {}
    return found


async def observations(store: Any, handle: RunHandle) -> list[Any]:
    async with store.reading() as tx:
        run = await runs.last_run(tx, handle.thread_id)
        assert run is not None
        return [step.observation for step in await runs.steps_of(tx, run) if step.kind == "tool"]


async def test_each_tool_of_the_document_does_its_work(
    open_analyst: OpenAnalyst,
    documents: list[dict[str, Any]],
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LONGTHREAD_SECRET_API_KEY", "a-secret-key")
    server.says(answer('{"found": ["a-secret-key", "agents"]}'))
    model = ScriptedChatModel(
        [
            call("search_web", query="AI agents"),
            call("search_results", query="x", limit=2),
            call("search_data", query="AI%"),
            call("search_data", query="50%"),
            call("search_web", q="AI agents"),
            finish("Found."),
        ]
    )
    analyst = await open_analyst(model)
    await Catalog(analyst.store).apply(documents)
    handle = await analyst.ask("Search.", agent="researcher", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    web, code, none, some, wrong = await observations(analyst.store, handle)
    [request] = server.came
    assert (request.method, request.json) == ("POST", {"q": "AI agents", "num": 5}), (
        "the skill's default, not the tool's"
    )
    assert request.headers["authorization"] == "Bearer a-secret-key"
    assert web["data"]["body"]["found"] == ["***", "agents"]
    assert "a-secret-key" not in str([message.content for each in model.calls for message in each.messages])
    assert code["data"]["result"] == ["x", "x"]
    assert (len(none["data"]["rows"]), len(some["data"]["rows"])) == (0, 1)
    assert (wrong["ok"], wrong["error"]["type"]) == (False, "arguments_invalid")


async def test_tools_that_cannot_be_used_are_refused_when_they_are_applied(
    open_analyst: OpenAnalyst, documents: list[dict[str, Any]]
) -> None:
    catalog = Catalog((await open_analyst([])).store)
    wrong = {
        "search_web": ({"body_template": {"q": "{{qery}}"}}, "qery"),
        "search_results": ({"code": "def run(query): pass"}, "execute"),
        "search_data": ({"sql_template": "DELETE FROM data WHERE content = {{query}}"}, "sql_template"),
    }
    for data in documents:
        if data["name"] in wrong:
            change, said = wrong[data["name"]]
            bad = data | {"implementation": data["implementation"] | change}
            with pytest.raises(CatalogInvalid, match=rf"{data['name']}, implementation: .*{said}"):
                await catalog.apply([bad, *(each for each in documents if each["name"] == "main")])


async def test_a_source_that_is_switched_off_is_not_opened_again(
    open_analyst: OpenAnalyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, bare = "postgresql://u:${PW}@h/d", "postgresql://u@h/d"
    monkeypatch.setenv("LONGTHREAD_SECRET_PW", "first")
    opened: list[str] = []
    really = Opener.open

    async def in_its_place(self: Opener, spec: str, user_id: str, person: object = None) -> Source:
        opened.append(spec)
        source = await really(self, "demo", user_id)
        source.spec = bare
        return source

    monkeypatch.setattr(Opener, "open", in_its_place)
    analyst = await open_analyst([])
    catalog, user = Catalog(analyst.store), analyst.settings.user
    await catalog.apply([{"kind": "source", "name": "main", "address": address}])
    sql = "SELECT count(*) AS n FROM sites"
    new = NewCard("n", "How many?", "t", None, bare, sql, {}, {"columns": ["n"], "rows": [[0]]}, datetime.now(UTC))
    async with analyst.store.writing() as tx:
        await log.create_thread(tx, "t", user_id=user)
        board = await boards.create(tx, "Sites", user_id=user)
        card = await boards.add_card(tx, board, new)
    assert await analyst.sources.fingerprint(bare, user_id=user)
    assert (await analyst.boards.refresh(board.id, card.id, user_id=user)).error is None
    monkeypatch.setenv("LONGTHREAD_SECRET_PW", "second")
    await analyst.sources.fingerprint(bare, user_id=user)
    assert opened == [f"postgresql://u:{word}@h/d" for word in ("first", "first", "second")]
    await catalog.apply([{"kind": "source", "name": "main", "address": address, "is_active": False}])
    with pytest.raises(DefinitionNotFound, match="switched off"):
        await analyst.sources.fingerprint(bare, user_id=user)
    refreshed = await analyst.boards.refresh(board.id, card.id, user_id=user)
    assert refreshed.error is not None and "switched off" in refreshed.error["message"]
    assert len(opened) == 3
