"""`kill -9` at every write of a run, then resume: nothing is lost, nothing finished is done twice."""

from __future__ import annotations

import asyncio
import collections
import sys
from pathlib import Path

import pytest
from tests.agent import dying

from longthread.agent.analyst import Analyst
from longthread.errors import NothingToResume, ThreadNotFound
from longthread.model.event import FINAL
from longthread.settings import Settings
from longthread.store import log, runs


async def _die(data: Path, shop: str, when: str) -> int:
    """Let processes die at every write there is; how many did."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.agent.dying", str(data), shop, when, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return int(out)


async def _resumed(analyst: Analyst) -> str:
    """The answer after a resume, or after asking again when the crash came before anything was acknowledged."""
    try:
        final = await (await analyst.resume("t")).wait()
    except NothingToResume:
        return str((await analyst.state("t"))["answer"]["data"])
    assert final.type == "finished"
    return str(final.data["answer"])


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_run_survives_a_kill_at_any_write(tmp_path: Path, shop: str, when: str) -> None:
    died = await _die(tmp_path, shop, when)
    assert died > 20
    for number in range(1, died + 1):
        settings = Settings.load(env_file=None, data_dir=tmp_path / str(number), model="test:scripted")
        async with Analyst.open(settings, models=lambda name, _: dying.model()) as analyst:
            if number == 1 and when == "before":
                with pytest.raises(ThreadNotFound):
                    await analyst.resume("t")
                continue
            assert await _resumed(analyst) == dying.ANSWER, f"killed {when} write {number}"
            await _check(analyst, f"killed {when} write {number}")


async def _check(analyst: Analyst, where: str) -> None:
    async with analyst.store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id="default")
        entries = await log.branch(tx, "t", thread.tip)
        steps = await runs.steps_from(tx, "t", 0)
        run = await runs.last_run(tx, "t")
        assert run is not None
        events = await runs.events_after(tx, "t", run.id, 0)
    assert thread.tip == thread.entry_count == len(entries), where
    assert [entry.role for entry in entries] == ["user", "assistant", "tool", "assistant", "tool", "tool", "assistant"]
    calls = [call.id for entry in entries for call in entry.tool_calls]
    assert sorted(calls) == sorted(entry.tool_call_id or "" for entry in entries if entry.role == "tool"), where
    finished = collections.Counter(step.call_id for step in steps if step.call_id and step.status == "done")
    assert set(finished.values()) == {1}, f"a finished call was repeated: {where}"
    assert [event.seq for event in events] == sorted({event.seq for event in events}), where
    assert [event.type in FINAL for event in events].count(True) == 1, where
