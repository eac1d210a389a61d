"""A run that waits for a person is stopped: its calls are not made, and the conversation goes on."""

from __future__ import annotations

import json

import pytest
from tests.analysts import OpenAnalyst
from tests.contract.base import registered
from tests.runs.approvals import Sent, define, sent
from tests.runs.test_approval import APPROVE, MAIL, kept, last_run, results, scripted, waiting
from tests.script import call, finish

from longthread.errors import NothingToStop, NotPending, ThreadNotFound
from longthread.runs.worker import may_be_alive
from longthread.store import leases, log, run_events, runs

pytestmark = pytest.mark.one_backend

__all__ = ["sent"]


async def test_a_run_that_waits_is_called_off(open_analyst: OpenAnalyst, sent: Sent) -> None:
    model = scripted([MAIL, call("look_up", to="bob"), call("send_mail", to="eve")], finish("As you like."))
    analyst = await open_analyst(model)
    run_id, [ada, eve] = await waiting(analyst)
    await analyst.approvals.decide("t1", {ada.call_id: APPROVE}, by="grace", user_id=analyst.settings.user)
    other = await open_analyst(model)
    await other.runs.stop("t1", user_id=other.settings.user)
    run = await last_run(analyst)
    assert (run.id, run.status, run.outcome["reason"]) == (run_id, "paused", "stopped")
    assert "look_up" in run.outcome["summary"] and run.outcome["hint"]
    assert await analyst.approvals.pending("t1", user_id=analyst.settings.user) == []
    assert [each.decision for each in await kept(analyst, run_id)] == ["superseded", "superseded"]
    async with analyst.store.reading() as tx:
        thread = await log.find_thread(tx, "t1", user_id="default")
        entries = await log.branch(tx, "t1", thread.tip, limit=99)
        told = await run_events.events_after(tx, "t1", run_id, 0)
    found = [json.loads(each.text) for each in entries if each.role == "tool"]
    assert [each.get("error", {}).get("type") for each in found] == ["called_off", None, "called_off"]
    assert [each.type for each in told][-3:] == ["waiting", "decided", "paused"]
    with pytest.raises(NotPending, match="called off"):
        await analyst.approvals.decide("t1", {eve.call_id: APPROVE}, user_id=analyst.settings.user)
    handle = await analyst.runs.resume("t1", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    assert [each.get("error", {}).get("type") for each in results(model)] == ["called_off", None, "called_off"]
    assert sent == [("look_up", {"to": "bob"})]


@pytest.mark.parametrize(
    ("question", "done", "said"),
    [("给 Ada 写信。", "已完成", "运行被停止，未执行"), ("Write to Ada.", "Done", "not made, the run was stopped")],
)
async def test_a_call_that_was_called_off_is_not_among_what_was_done(
    open_analyst: OpenAnalyst, sent: Sent, question: str, done: str, said: str
) -> None:
    analyst = await open_analyst(scripted([MAIL, call("look_up", to="bob")]))
    await define(analyst.store)
    handle = await analyst.ask(question, agent="clerk", thread_id="t1", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "waiting"
    await analyst.runs.stop("t1", user_id=analyst.settings.user)
    lines = str((await last_run(analyst)).outcome["summary"]).splitlines()
    assert [line for line in lines if "look_up" in line] == [f'**{done}**: look_up({{"to": "bob"}})']
    [problem] = [line for line in lines if "send_mail" in line]
    assert said in problem and done not in problem
    assert "stopped the run instead" not in problem


async def test_what_cannot_be_stopped_is_told(open_analyst: OpenAnalyst, sent: Sent) -> None:
    analyst = await open_analyst(scripted(finish("Hello.")))
    await define(analyst.store)
    handle = await analyst.ask("Hello?", agent="clerk", thread_id="t1", user_id=analyst.settings.user)
    await handle.wait()
    with pytest.raises(NothingToStop, match="t1 has no run to stop"):
        await analyst.runs.stop("t1", user_id=analyst.settings.user)
    with pytest.raises(ThreadNotFound):
        await analyst.runs.stop("t2", user_id=analyst.settings.user)
    with pytest.raises(ThreadNotFound):
        await analyst.runs.stop("t1", user_id="eve")
    elsewhere = runs.NewRun("run2", "Hello?", None, "test:scripted", "auto", 5)
    async with analyst.store.writing() as tx:
        await registered(tx, "elsewhere/1/x")
        await runs.begin(tx, "t1", elsewhere, owner="elsewhere/1/x", alive=may_be_alive)
    await analyst.runs.stop("t1", user_id=analyst.settings.user)
    async with analyst.store.reading() as tx:
        [held] = await leases.held(tx, "elsewhere/1/x")
    assert held.stop_by == analyst.settings.user
