"""Sources of the catalog whose addresses have secrets, asked again by conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from tests.analysts import OpenAnalyst
from tests.script import call, finish

from longthread import Catalog
from longthread.errors import SourceLoginFailed
from longthread.runs.analyst import Analyst
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.postgres


@pytest.fixture
def source(guarded_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A source of the catalog whose address has a secret, which is set."""
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    monkeypatch.setenv("LONGTHREAD_SECRET_SHU_PW", "s3cret")
    return {"kind": "source", "name": "shop", "address": guarded_url.replace("s3cret", "${SHU_PW}")}


async def asked(analyst: Analyst, *, thread: str | None = None, source: str | None = None, agent: Any = None) -> str:
    handle = await analyst.ask("How many?", thread_id=thread, source=source, agent=agent, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    return handle.thread_id


async def test_each_question_has_the_password_that_the_catalogs_source_has_then(
    open_analyst: OpenAnalyst, source: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = [await open_analyst([finish("ok"), finish("ok")]) for _ in range(2)]
    catalog = Catalog(one.store)
    await catalog.apply([source])
    thread = await asked(one, source="shop")
    await asked(other, thread=thread)
    monkeypatch.setenv("LONGTHREAD_SECRET_SHU_PW", "wr0ng")
    with pytest.raises(SourceLoginFailed, match="password authentication failed"):
        await asked(one, thread=thread)
    monkeypatch.setenv("LONGTHREAD_SECRET_OTHER", "s3cret")
    await catalog.apply([source | {"address": source["address"].replace("SHU_PW", "OTHER")}])
    await asked(one, thread=thread)
    await catalog.delete("source", "shop")
    for analyst in (one, other):
        with pytest.raises(SourceLoginFailed, match="apply a source of this address to the catalog"):
            await asked(analyst, thread=thread)


async def test_agents_that_are_asked_below_go_on_with_it(open_analyst: OpenAnalyst, source: dict[str, Any]) -> None:
    clerk = {"kind": "agent", "name": "clerk", "system_prompt": "You count.", "skills": ["data"]}
    boss = {"kind": "agent", "name": "boss", "system_prompt": "You ask.", "sub_agents": ["clerk"]}
    model = ScriptedChatModel([call("ask_clerk", task="Count."), call("list_tables"), finish("1"), finish("1")] * 2)
    analyst = await open_analyst(model)
    await Catalog(analyst.store).apply([source, clerk, boss])
    thread = await asked(analyst, source="shop", agent="boss")
    await asked(await open_analyst(model), thread=thread)
    told = [call for call in model.calls if " tables, with their rows:" in str(call.messages[-1].text)]
    assert len(told) == 2


async def test_policies_hold_as_on_the_first_turn(
    open_analyst: OpenAnalyst, source: dict[str, Any], postgres_url: str, guarded_url: str, tmp_path: Path
) -> None:
    role = guarded_url.split("//")[1].split(":")[0]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE u (a int); GRANT SELECT ON u TO {role}".encode())
    policies = tmp_path / "policies.yaml"
    bare = guarded_url.replace(":s3cret", "")
    policies.write_text(yaml.safe_dump({"sources": [{"source": bare, "tables": {"u": {"hidden": True}}}]}))
    for_each: list[Any] = []
    thread: str | None = None
    for named in ("shop", None):
        model = ScriptedChatModel([call("list_tables"), finish("t")])
        analyst = await open_analyst(model, source_policies=policies)
        await Catalog(analyst.store).apply([source])
        thread = await asked(analyst, thread=thread, source=named)
        for_each.append(model.calls[-1].messages[-1].text)
    assert for_each == ["1 of 1 tables, with their rows:\nt: 0"] * 2
