"""What others wrote into names, titles and logs is shown, and commands no terminal."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from longthread.cli.app import main
from longthread.model.catalog import Definition
from longthread.model.entry import Draft
from longthread.model.ids import new_id
from longthread.model.markdown import in_line, visible
from longthread.store import catalog, log
from longthread.store.open import open_store

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]
EVIL = "\x1b[2J\x1b]0;x\x07\x9b31m\u202e研究员\n\tready\u200b"
SHOWN = r"\u001b[2J\u001b]0;x\u0007\u009b31m\u202e研究员\u000a\u0009ready\u200b"


def bare(text: str) -> bool:
    """Whether nothing in a text commands a terminal, but for the colours that are Longthread's own."""
    return not set(text) & set("\x1b\x07\x9b\u202e\u200b")


def test_a_text_is_what_it_looks_like() -> None:
    assert (in_line(EVIL), visible("研究员\n\tÄ é 👩‍🔬")) == (SHOWN, "研究员\n\tÄ é 👩‍🔬")
    assert json.loads(f'"{in_line("".join(map(chr, range(0x2100))).replace(chr(34), "").replace(chr(92), ""))}"')


@pytest.fixture
def evil(store_address: str) -> None:
    """An agent and a conversation that another program has written, under a name that nobody may apply."""

    async def write() -> None:
        async with open_store(store_address) as store, store.writing() as tx:
            body = {"system_prompt": EVIL, "config": {}, "skills": [], "sub_agents": [], "description": EVIL}
            body["is_active"] = True
            await catalog.put(tx, Definition("agent", "11111111-1111-4111-8111-111111111111", EVIL, body))
            await log.create_thread(tx, "t1", user_id="default", title=EVIL)
            draft = Draft(id=new_id(), role="user", text=f"rocket {EVIL}", name=EVIL)
            await log.append(tx, "t1", [draft], tip=0, size=0)

    asyncio.run(write())


def test_lists_show_names_and_nothing_else(run: Run, evil: None, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = run("agents", "list").stdout
    assert bare(agents) and f"{SHOWN}\tv1\t" in agents
    assert bare(run("threads", "list").stdout)
    shown = run("agents", "show", EVIL).stdout
    assert bare(shown) and "研究员" in shown
    assert yaml.safe_load(shown)["name"] == EVIL and yaml.safe_load(shown)["system_prompt"] == EVIL
    told = run("agents", "list", "--json").stdout
    assert bare(told) and EVIL in [json.loads(line)["name"] for line in told.splitlines()]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "400")
    for command in ("agents", "threads"):
        table = run(command, "list").stdout
        assert "\x1b[2J" not in table and bare(table.replace("\x1b[", "")) and r"\u202e研究员" in table
    monkeypatch.delenv("FORCE_COLOR")
    assert bare(run("agents", "delete", EVIL, "--yes").stdout)
    for command in (["recall", "rocket"], ["threads", "show", "t1"]):
        found = run(*command).stdout
        assert bare(found) and r"rocket \u001b[2J" in found


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_errors_and_logs_show_names_and_nothing_else(
    run: Run, evil: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["longthread", "agents", "show", f"not {EVIL}", "--json"])
    with pytest.raises(SystemExit):
        main()
    said = capfd.readouterr()
    assert bare(said.out + said.err) and r"not \u001b[2J" in said.err and "研究员" in said.err
    assert logging.lastResort is not None
    record = logging.LogRecord("longthread", logging.WARNING, "", 1, "The agent %s.", (EVIL,), None)
    assert bare(logging.lastResort.format(record))
