"""Calls that a person decides about: they wait, whatever becomes of the process, and are made once or not at all."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage
from tests.analysts import OpenAnalyst
from tests.orphans import orphans
from tests.runs.approvals import TOOLS, Sent, define, sent
from tests.script import call, events_of, finish

from longthread import Catalog
from longthread.errors import (
    ArgumentsInvalid,
    InvalidInput,
    NothingToStop,
    NotPending,
    RunInProgress,
    RunWaiting,
    SecretUnusable,
    StoreError,
    ThreadNotFound,
    ToolInvalid,
)
from longthread.model.catalog import ToolDefinition
from longthread.model.run import Approval, Decision, Run
from longthread.runs.analyst import Analyst
from longthread.runs.worker import RunWorker, here, may_be_alive
from longthread.server.history import run_json
from longthread.store import log, run_events, runs, wait_list
from longthread.store.listing import latest_runs
from longthread.testing import ScriptedChatModel
from longthread.tools import tool_type
from longthread.tools.secrets import read_secrets
from longthread.tools.tool import DefinedTool, Observation, Tool, make_success
from longthread.tools.tool_type import ToolParts
from longthread.tools.types import code, mcp, query

pytestmark = pytest.mark.one_backend

__all__ = ["sent"]

MAIL = call("send_mail", to="ada")
APPROVE = Decision("approve")


def scripted(*replies: Any) -> ScriptedChatModel:
    """A model that no request is made of which a provider would refuse."""

    def checked(reply: Any) -> Any:
        def asked(messages: list[BaseMessage]) -> Any:
            assert list(orphans(messages)) == []
            return reply

        return asked

    return ScriptedChatModel([checked(reply) for reply in replies])


async def waiting(analyst: Analyst, thread_id: str = "t1") -> tuple[str, list[Approval]]:
    """Ask the clerk; the run waits with these calls."""
    await define(analyst.store)
    handle = await analyst.ask("Write to Ada.", agent="clerk", thread_id=thread_id, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "waiting"
    return handle.run.id, await analyst.approvals.pending(thread_id, user_id=analyst.settings.user)


async def last_run(analyst: Analyst, thread_id: str = "t1") -> Run:
    async with analyst.store.reading() as tx:
        found = await runs.last_run(tx, thread_id)
    assert found is not None
    return found


async def kept(analyst: Analyst, run_id: str, thread_id: str = "t1") -> list[Approval]:
    async with analyst.store.reading() as tx:
        return await wait_list.of_run(tx, thread_id, run_id)


def results(model: ScriptedChatModel) -> list[dict[str, Any]]:
    """The observations of the last request."""
    return [json.loads(str(each.text)) for each in model.calls[-1].messages if isinstance(each, ToolMessage)]


async def test_a_call_waits_and_is_made_when_it_is_approved(open_analyst: OpenAnalyst, sent: Sent) -> None:
    model = scripted(MAIL, finish("Sent."))
    analyst = await open_analyst(model)
    run_id, [asked] = await waiting(analyst)
    assert sent == []
    assert (asked.tool, asked.args, asked.description) == ("send_mail", {"to": "ada", "copies": 1}, "Does send_mail.")
    run = await last_run(analyst)
    assert (run.id, run.status) == (run_id, "waiting")
    async with analyst.store.reading() as tx:
        assert not await runs.is_held(tx, run, alive=lambda owner: True)
    handle = await analyst.approvals.decide("t1", {asked.call_id: APPROVE}, by="grace", user_id=analyst.settings.user)
    assert handle is not None and handle.run.id == run_id
    events = await events_of(handle)
    assert [event.type for event in events if event.type != "text"] == ["step_started", "step_finished", "finished"]
    assert sent == [("send_mail", {"to": "ada", "copies": 1})]
    assert [result["data"]["done"] for result in results(model)] == ["send_mail"]
    [made] = await kept(analyst, run_id)
    assert (made.decision, made.by, made.at is not None) == ("approve", "grace", True)
    async with analyst.store.reading() as tx:
        told = await run_events.events_after(tx, "t1", run_id, 0)
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    told = [event for event in told if event.type != "text"]
    types = ["started", "thought", "waiting", "decided", "step_started", "step_finished", "finished"]
    assert [event.type for event in told] == types
    assert told[2].data["calls"] == [asked.request()]
    said = {"id": asked.call_id, "tool": "send_mail", "decision": "approve", "by": "grace"}
    assert told[3].data == {"calls": [said], "pending": 0}
    assert await analyst.approvals.pending("t1", user_id=analyst.settings.user) == []


async def test_a_rejected_call_is_not_made_and_the_model_knows_why(open_analyst: OpenAnalyst, sent: Sent) -> None:
    model = scripted(MAIL, finish("As you like."))
    analyst = await open_analyst(model)
    run_id, [asked] = await waiting(analyst)
    handle = await analyst.approvals.decide(
        "t1", {asked.call_id: {"type": "reject", "message": "她在休假"}}, user_id=analyst.settings.user
    )
    assert handle is not None and (await handle.wait()).type == "finished"
    assert sent == []
    [result] = results(model)
    assert result["error"]["type"] == "rejected" and "They say: “她在休假” Do not" in result["error"]["message"]
    [made] = await kept(analyst, run_id)
    assert (made.decision, made.message, made.by) == ("reject", "她在休假", "default")


async def test_an_edited_call_is_made_as_it_was_edited(open_analyst: OpenAnalyst, sent: Sent) -> None:
    model = scripted(MAIL, finish("Sent."))
    analyst = await open_analyst(model)
    run_id, [asked] = await waiting(analyst)
    edit = {"type": "edit", "edited_action": {"name": "send_mail", "args": {"to": "李雷"}}}
    handle = await analyst.approvals.decide("t1", {asked.call_id: edit}, user_id=analyst.settings.user)
    assert handle is not None and (await handle.wait()).type == "finished"
    assert sent == [("send_mail", {"to": "李雷", "copies": 1})]
    [result] = results(model)
    assert result["edited"]["args"] == {"to": "李雷", "copies": 1}
    [made] = await kept(analyst, run_id)
    assert (made.decision, made.args, made.edited) == ("edit", asked.args, {"to": "李雷", "copies": 1})
    async with analyst.store.reading() as tx:
        [step] = [step for step in await runs.steps_of(tx, await last_run(analyst)) if step.kind == "tool"]
    assert step.args == {"to": "李雷", "copies": 1}


WRONG: list[tuple[Any, type[Exception]]] = [
    ({"type": "edit", "edited_action": {"name": "send_mail", "args": {"to": 5}}}, ArgumentsInvalid),
    ({"type": "edit", "edited_action": {"name": "send_mail", "args": {"to": "a", "bcc": "b"}}}, ArgumentsInvalid),
    ({"type": "edit", "edited_action": {"name": "look_up", "args": {"to": "a"}}}, InvalidInput),
    ({"type": "edit"}, InvalidInput),
    ({"type": "maybe"}, InvalidInput),
    ({"type": "reject", "message": 5}, InvalidInput),
    ("approve", InvalidInput),
]


async def test_a_decision_that_is_none_is_refused_and_nothing_is_lost(open_analyst: OpenAnalyst, sent: Sent) -> None:
    analyst = await open_analyst(scripted([MAIL, MAIL], finish("Sent.")))
    _, [one, other] = await waiting(analyst)
    for decision, error in WRONG:
        with pytest.raises(error):
            await analyst.approvals.decide(
                "t1", {one.call_id: APPROVE, other.call_id: decision}, user_id=analyst.settings.user
            )
        assert await analyst.approvals.pending("t1", user_id=analyst.settings.user) == [one, other]
    handle = await analyst.approvals.decide(
        "t1", {one.call_id: APPROVE, other.call_id: APPROVE}, user_id=analyst.settings.user
    )
    assert handle is not None and (await handle.wait()).type == "finished"
    assert len(sent) == 2


async def test_calls_beside_it_are_made_and_each_decision_is_kept(open_analyst: OpenAnalyst, sent: Sent) -> None:
    model = scripted([MAIL, call("look_up", to="bob"), call("send_mail", to="eve")], finish("Done."))
    analyst = await open_analyst(model)
    run_id, [ada, eve] = await waiting(analyst)
    assert [asked.args["to"] for asked in (ada, eve)] == ["ada", "eve"]
    assert sent == [("look_up", {"to": "bob"})]
    assert await analyst.approvals.decide("t1", {eve.call_id: APPROVE}, user_id=analyst.settings.user) is None
    assert await analyst.approvals.pending("t1", user_id=analyst.settings.user) == [ada]
    assert (await last_run(analyst)).status == "waiting"
    other = await open_analyst(model)
    handle = await other.approvals.decide("t1", {ada.call_id: Decision("reject")}, user_id=other.settings.user)
    assert handle is not None and (await handle.wait()).type == "finished"
    assert sent[1:] == [("send_mail", {"to": "eve", "copies": 1})]
    assert [result["ok"] for result in results(model)] == [False, True, True]
    assert [made.decision for made in await kept(analyst, run_id)] == ["reject", "approve"]


async def test_what_was_decided_is_not_decided_again(open_analyst: OpenAnalyst, sent: Sent) -> None:
    analyst = await open_analyst(scripted([MAIL, MAIL], finish("Sent.")))
    _, [one, other] = await waiting(analyst)
    assert await analyst.approvals.decide("t1", {one.call_id: APPROVE}, user_id=analyst.settings.user) is None
    with pytest.raises(NotPending, match=one.call_id):
        await analyst.approvals.decide(
            "t1", {one.call_id: Decision("reject"), other.call_id: APPROVE}, user_id=analyst.settings.user
        )
    with pytest.raises(NotPending):
        await analyst.approvals.decide("t1", {"call_x": APPROVE}, user_id=analyst.settings.user)
    with pytest.raises(InvalidInput):
        await analyst.approvals.decide("t1", {}, user_id=analyst.settings.user)
    assert await analyst.approvals.pending("t1", user_id=analyst.settings.user) == [other]
    handle = await analyst.approvals.decide("t1", {other.call_id: APPROVE}, user_id=analyst.settings.user)
    assert handle is not None
    await handle.wait()
    with pytest.raises(NotPending):
        await analyst.approvals.decide("t1", {other.call_id: APPROVE}, user_id=analyst.settings.user)
    assert len(sent) == 2


async def test_another_question_supersedes_what_waits(open_analyst: OpenAnalyst, sent: Sent) -> None:
    model = scripted([MAIL, call("look_up", to="bob"), call("send_mail", to="eve")], finish("Something else."))
    analyst = await open_analyst(model)
    run_id, [ada, eve] = await waiting(analyst)
    await analyst.approvals.decide("t1", {ada.call_id: APPROVE}, user_id=analyst.settings.user)
    handle = await analyst.ask("Forget it. What is the weather?", thread_id="t1", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    assert sent == [("look_up", {"to": "bob"})]
    assert [result.get("error", {}).get("type") for result in results(model)] == ["superseded", None, "superseded"]
    assert [made.decision for made in await kept(analyst, run_id)] == ["superseded", "superseded"]
    assert await analyst.approvals.pending("t1", user_id=analyst.settings.user) == []
    with pytest.raises(NotPending):
        await analyst.approvals.decide("t1", {eve.call_id: APPROVE}, user_id=analyst.settings.user)
    async with analyst.store.reading() as tx:
        before = await runs.find_run(tx, "t1", run_id)
        told = await run_events.events_after(tx, "t1", run_id, 0)
    assert before is not None and (before.status, before.outcome) == ("paused", {"reason": "superseded"})
    assert [event.type for event in told][-3:] == ["waiting", "decided", "paused"]


@pytest.mark.parametrize("word", ["continue", "继续"])
async def test_to_go_on_decides_nothing(open_analyst: OpenAnalyst, sent: Sent, word: str) -> None:
    analyst = await open_analyst(scripted(MAIL))
    _, asked = await waiting(analyst)
    with pytest.raises(RunWaiting):
        await analyst.ask(word, thread_id="t1", user_id=analyst.settings.user)
    with pytest.raises(RunWaiting, match="longthread approve t1"):
        await analyst.runs.resume("t1", user_id=analyst.settings.user)
    assert await analyst.approvals.pending("t1", user_id=analyst.settings.user) == asked
    assert sent == []


async def test_each_round_of_a_run_waits_for_its_own(open_analyst: OpenAnalyst, sent: Sent) -> None:
    analyst = await open_analyst(scripted(MAIL, call("send_mail", to="eve"), finish("Sent.")))
    run_id, [ada] = await waiting(analyst)
    handle = await analyst.approvals.decide("t1", {ada.call_id: APPROVE}, user_id=analyst.settings.user)
    assert handle is not None
    assert [event.type for event in await events_of(handle)][-1] == "waiting"
    [eve] = await analyst.approvals.pending("t1", user_id=analyst.settings.user)
    assert eve.args["to"] == "eve"
    handle = await analyst.approvals.decide("t1", {eve.call_id: Decision("reject")}, user_id=analyst.settings.user)
    assert handle is not None and (await handle.wait()).type == "finished"
    assert sent == [("send_mail", {"to": "ada", "copies": 1})]
    assert [made.decision for made in await kept(analyst, run_id)] == ["approve", "reject"]


async def test_nobody_is_asked_about_a_call_that_does_not_fit(open_analyst: OpenAnalyst, sent: Sent) -> None:
    model = scripted(call("send_mail", whom="ada"), finish("I could not."))
    analyst = await open_analyst(model)
    await define(analyst.store)
    handle = await analyst.ask("Write.", agent="clerk", thread_id="t1", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    assert results(model)[0]["error"]["type"] == "arguments_invalid"
    assert sent == []


async def dies(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("killed")


async def test_nobody_finds_a_run_that_was_decided_without_an_owner(
    open_analyst: OpenAnalyst, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyst = await open_analyst(scripted(MAIL, finish("Sent.")))
    run_id, [asked] = await waiting(analyst)
    other, resume = await open_analyst([]), analyst.runs.resume

    async def looked_at(thread_id: str, **how: Any) -> Any:
        async with other.store.reading() as tx:
            found = await runs.last_run(tx, thread_id)
            assert found is not None and (await run_json(tx, found))["status"] == "running"
            thread = await log.find_thread(tx, thread_id, user_id="default")
            assert await latest_runs(tx, [thread], user_id="default", alive=may_be_alive) == {thread_id: "running"}
        for meddling in (
            other.runs.resume(thread_id, user_id=other.settings.user),
            other.ask("continue", thread_id=thread_id, user_id=other.settings.user),
        ):
            with pytest.raises(RunInProgress):
                await meddling
        return await resume(thread_id, **how)

    monkeypatch.setattr(analyst.runs, "resume", looked_at)
    handle = await analyst.approvals.decide("t1", {asked.call_id: APPROVE}, user_id=analyst.settings.user)
    assert handle is not None and handle.run.id == run_id
    assert (await handle.wait()).type == "finished"
    assert len(sent) == 1


@pytest.mark.parametrize("how", ["deleted", "off"])
async def test_a_call_of_a_tool_that_was_taken_away_is_not_made(
    open_analyst: OpenAnalyst, sent: Sent, how: str
) -> None:
    again = call("send_mail", to="bob")
    model = scripted(MAIL, again, finish("It cannot be done."))
    analyst = await open_analyst(model)
    run_id, [asked] = await waiting(analyst)
    if how == "deleted":
        await Catalog(analyst.store).delete("tool", "send_mail", force=True)
    else:
        await Catalog(analyst.store).apply([TOOLS[0] | {"is_active": False}])
    edit = {"type": "edit", "edited_action": {"name": "send_mail", "args": {"to": "李雷"}}}
    handle = await analyst.approvals.decide("t1", {asked.call_id: edit}, by="grace", user_id=analyst.settings.user)
    assert handle is not None and (await handle.wait()).type == "finished"
    assert sent == []
    said = [result["error"] for result in results(model)]
    assert [each["type"] for each in said] == ["tool_gone", "tool_gone"]  # and nobody is asked about the second one
    assert "send_mail is no longer there" in said[0]["message"]
    [made] = await kept(analyst, run_id)
    assert (made.decision, made.by, made.edited) == ("edit", "grace", {"to": "李雷", "copies": 1})


async def test_a_secret_that_is_gone_when_a_call_is_approved_is_told(
    open_analyst: OpenAnalyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGTHREAD_SECRET_MAIL_KEY", "very-secret-value")
    about = {"endpoint": "http://127.0.0.1:9/{{to}}", "headers": {"X-Key": "${MAIL_KEY}"}, "approve": True}
    analyst = await open_analyst(scripted(MAIL))
    await define(analyst.store)
    await Catalog(analyst.store).apply([TOOLS[0] | {"type": "api", "implementation": about}])
    handle = await analyst.ask("Write to Ada.", agent="clerk", thread_id="t1", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "waiting"
    monkeypatch.delenv("LONGTHREAD_SECRET_MAIL_KEY")
    [asked] = await analyst.approvals.pending("t1", user_id=analyst.settings.user)
    model = scripted(finish("It cannot be sent."))
    other = await open_analyst(model)  # another process, which was started without it
    went_on = await other.approvals.decide("t1", {asked.call_id: APPROVE}, user_id=other.settings.user)
    assert went_on is not None and (await went_on.wait()).type == "finished"
    [result] = results(model)
    assert result["error"]["type"] == "secret_unusable"
    assert "LONGTHREAD_SECRET_MAIL_KEY" in result["error"]["message"] and "very-secret" not in str(result)


@pytest.mark.parametrize("required", [False, True])
async def test_a_server_whose_secret_is_gone_when_a_call_is_approved_is_told(
    open_analyst: OpenAnalyst, sent: Sent, monkeypatch: pytest.MonkeyPatch, required: bool
) -> None:
    """A server's tools are there only when it can be asked."""
    build = query.TYPE.build

    async def needing(definition: DefinedTool, workshop: ToolParts) -> Any:
        read_secrets(["MAIL_KEY"]).fill("${MAIL_KEY}")
        return await build(definition, workshop)

    async def checked(definition: DefinedTool, workshop: ToolParts) -> Any:
        try:
            return await needing(definition, workshop)
        except SecretUnusable as error:
            raise ToolInvalid(tool=definition.name, problem=str(error)) from None

    monkeypatch.setattr(query, "TYPE", replace(query.TYPE, build=checked))
    monkeypatch.setenv("LONGTHREAD_SECRET_MAIL_KEY", "very-secret-value")
    model = scripted(MAIL, finish("It cannot be sent."))
    analyst = await open_analyst(model)
    await define(analyst.store)
    items = [{"tool": "send_mail", "required": required}]
    await Catalog(analyst.store).apply([{"kind": "skill", "name": "mail", "tools": items}])
    handle = await analyst.ask("Write to Ada.", agent="clerk", thread_id="t1", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "waiting"
    [asked] = await analyst.approvals.pending("t1", user_id=analyst.settings.user)
    monkeypatch.delenv("LONGTHREAD_SECRET_MAIL_KEY")
    if required:
        with pytest.raises(ToolInvalid, match="LONGTHREAD_SECRET_MAIL_KEY"):
            await analyst.approvals.decide("t1", {asked.call_id: APPROVE}, user_id=analyst.settings.user)
        monkeypatch.setenv("LONGTHREAD_SECRET_MAIL_KEY", "very-secret-value")
        went_on = await analyst.runs.resume("t1", user_id=analyst.settings.user)  # what was decided holds
        assert (await went_on.wait()).type == "finished" and len(sent) == 1
        return
    decided = await analyst.approvals.decide("t1", {asked.call_id: APPROVE}, user_id=analyst.settings.user)
    assert decided is not None and (await decided.wait()).type == "finished"
    [result] = results(model)
    assert result["error"]["type"] == "unknown_tool"
    assert "tool send_mail cannot be used: The secret MAIL_KEY is not set" in result["error"]["message"]
    assert sent == []


async def test_a_process_that_dies_with_a_decided_run_leaves_it_to_others(
    open_analyst: OpenAnalyst, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither taken over nor given back: as after kill -9."""
    run_id, [asked] = await waiting(await open_analyst(scripted(MAIL)))
    analyst = await open_analyst([])
    with monkeypatch.context() as patch:
        patch.setattr("longthread.runs.worker.new_worker", lambda: f"{here()}/{2**22 + 1}/gone")
        patch.setattr(RunWorker, "release", dies)
        patch.setattr(analyst.runs, "resume", dies)
        with pytest.raises(RuntimeError, match="killed"):
            await analyst.approvals.decide("t1", {asked.call_id: APPROVE}, user_id=analyst.settings.user)
    other = await open_analyst(scripted(finish("Sent.")))
    async with other.store.reading() as tx:
        assert (await run_json(tx, await last_run(other)))["status"] == "interrupted"
    handle = await other.runs.resume("t1", user_id=other.settings.user)
    assert handle.run.id == run_id and (await handle.wait()).type == "finished"
    assert len(sent) == 1


async def test_a_run_that_was_decided_goes_on_after_its_process_died(
    open_analyst: OpenAnalyst, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyst = await open_analyst(scripted([MAIL, call("send_mail", to="eve")]))
    run_id, [ada, eve] = await waiting(analyst)
    with monkeypatch.context() as patch:
        patch.setattr(analyst.runs, "resume", dies)
        with pytest.raises(RuntimeError, match="killed"):
            await analyst.approvals.decide(
                "t1", {ada.call_id: Decision("reject"), eve.call_id: APPROVE}, user_id=analyst.settings.user
            )
    assert (await last_run(analyst)).status == "running"
    model = scripted(finish("Done."))
    other = await open_analyst(model)
    handle = await other.runs.resume("t1", user_id=other.settings.user)
    assert handle.run.id == run_id
    assert (await handle.wait()).type == "finished"
    assert sent == [("send_mail", {"to": "eve", "copies": 1})]
    assert [result["ok"] for result in results(model)] == [False, True]


async def test_a_rejection_holds_though_something_else_is_asked_after_a_crash(
    open_analyst: OpenAnalyst, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scripted([MAIL, call("send_mail", to="eve")], finish("Hello."))
    analyst = await open_analyst(model)
    _, [ada, eve] = await waiting(analyst)
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="killed"):
        patch.setattr(analyst.runs, "resume", dies)
        await analyst.approvals.decide(
            "t1", {ada.call_id: Decision("reject"), eve.call_id: APPROVE}, user_id=analyst.settings.user
        )
    handle = await analyst.ask("Hello?", thread_id="t1", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    assert [result["error"]["type"] for result in results(model)] == ["rejected", "interrupted"]
    assert sent == []


async def test_another_user_neither_sees_nor_decides(open_analyst: OpenAnalyst, sent: Sent) -> None:
    analyst = await open_analyst(scripted(MAIL))
    _, [asked] = await waiting(analyst)
    with pytest.raises(ThreadNotFound):
        await analyst.approvals.pending("t1", user_id="eve")
    with pytest.raises(ThreadNotFound):
        await analyst.approvals.decide("t1", {asked.call_id: APPROVE}, user_id="eve")
    assert await analyst.approvals.pending("t1", user_id=analyst.settings.user) == [asked]


async def test_a_thread_that_waits_is_deleted_with_what_waits(open_analyst: OpenAnalyst, sent: Sent) -> None:
    analyst = await open_analyst(scripted(MAIL))
    run_id, _ = await waiting(analyst)
    await analyst.threads.delete("t1", user_id=analyst.settings.user)
    assert await kept(analyst, run_id) == []
    async with analyst.store.reading() as tx:
        with pytest.raises(ThreadNotFound):
            await log.find_thread(tx, "t1", user_id="default")


async def test_only_one_of_two_who_decide_at_once_is_heard(open_analyst: OpenAnalyst, sent: Sent) -> None:
    model = scripted(MAIL, finish("Sent."))
    analyst = await open_analyst(model)
    _, [asked] = await waiting(analyst)
    other = await open_analyst(model)
    both = [
        each.approvals.decide("t1", {asked.call_id: APPROVE}, user_id=each.settings.user) for each in (analyst, other)
    ]
    heard = await asyncio.gather(*both, return_exceptions=True)
    refused = [each for each in heard if isinstance(each, NotPending | RunInProgress)]
    [handle] = [each for each in heard if not isinstance(each, BaseException) and each is not None]
    assert len(refused) == 1
    assert (await handle.wait()).type == "finished"
    assert len(sent) == 1


async def test_all_tools_of_a_definition_are_approved(monkeypatch: pytest.MonkeyPatch) -> None:
    async def call(given: Mapping[str, Any]) -> Observation:
        return make_success({})

    async def build(definition: DefinedTool, workshop: ToolParts) -> list[Tool]:
        return [Tool(name, "", {"type": "object"}, call) for name in ("one", "two")]

    monkeypatch.setattr(mcp, "TYPE", replace(mcp.TYPE, build=build))
    for approve in (True, False):
        implementation = {"command": "server", "approve": approve}
        definition = ToolDefinition("t", "server", "mcp", {}, implementation)
        tools = await tool_type.build(definition, None)  # type: ignore[arg-type]
        assert [tool.approve for tool in tools] == [approve] * 2


async def test_what_a_server_says_of_its_tool_keeps_nobody_from_being_asked(
    open_analyst: OpenAnalyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def build(definition: DefinedTool, workshop: ToolParts) -> list[Tool]:
        async def call(given: Mapping[str, Any]) -> Observation:
            return make_success({})

        return [Tool(definition.name, "A\x00B", {"type": "object", "properties": {"to": {"title": "\x00"}}}, call)]

    monkeypatch.setattr(query, "TYPE", replace(query.TYPE, build=build))
    analyst = await open_analyst(scripted(MAIL, finish("Sent.")))
    _, [asked] = await waiting(analyst)
    assert asked.description == "A\ufffdB"
    handle = await analyst.approvals.decide("t1", {asked.call_id: APPROVE}, user_id=analyst.settings.user)
    assert handle is not None and (await handle.wait()).type == "finished"


async def test_a_run_that_cannot_wait_ends(
    open_analyst: OpenAnalyst, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> None:
        raise StoreError(reason="full")

    model = scripted(MAIL, finish("Not now."))
    analyst = await open_analyst(model)
    await define(analyst.store)
    with monkeypatch.context() as patch:
        patch.setattr("longthread.runs.events.wait_list.let_wait", fails)
        handle = await analyst.ask("Write to Ada.", agent="clerk", thread_id="t1", user_id=analyst.settings.user)
        assert (await handle.wait()).data["error"]["type"] == "store_error"
    assert await analyst.approvals.pending("t1", user_id=analyst.settings.user) == []
    handle = await analyst.runs.resume("t1", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    assert [result["error"]["type"] for result in results(model)] == ["interrupted"]
    assert sent == []


def test_approve_is_true_or_false() -> None:
    with pytest.raises(ToolInvalid, match="approve"):
        code.check({"code": "def execute(): pass", "approve": "yes"}, {"type": "object"})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_done_no_model_is_handed_a_call_without_its_result(
    open_analyst: OpenAnalyst, sent: Sent, seed: int
) -> None:
    """A walk: questions, decisions about some calls or all, another process. The model looks at each request."""
    chance = random.Random(seed)

    def reply(messages: list[BaseMessage]) -> Any:
        assert list(orphans(messages)) == []
        count = chance.choice([0, 0, 1, 2, 3])
        names = [chance.choice(["send_mail", "send_mail", "look_up"]) for _ in range(count)]
        return [call(name, to=f"{name} {n}") for n, name in enumerate(names)] or finish("Done.")

    model = ScriptedChatModel(reply)
    analysts = [await open_analyst(model), await open_analyst(model)]
    await define(analysts[0].store)
    for _ in range(12):
        analyst = chance.choice(analysts)
        asked = await _pending(analyst)
        if chance.random() < 0.15:
            with suppress(NothingToStop, ThreadNotFound):
                await analyst.runs.stop("t1", user_id=analyst.settings.user)
            continue
        if asked and chance.random() < 0.7:
            chosen = chance.sample(asked, chance.randint(1, len(asked)))
            decisions = {each.call_id: Decision(chance.choice(["approve", "reject"])) for each in chosen}
            handle = await analyst.approvals.decide("t1", decisions, user_id=analyst.settings.user)
        else:
            handle = await analyst.ask("And now?", thread_id="t1", agent="clerk", user_id=analyst.settings.user)
        if handle is not None:
            assert (await handle.wait()).type in {"finished", "waiting", "paused"}
    async with analysts[0].store.reading() as tx:
        found = await runs.list_runs(tx, "t1", limit=99)
        asked_for = [each for run in found for each in await wait_list.of_run(tx, "t1", run.id)]
    waiting = await analysts[0].approvals.pending("t1", user_id="default")
    assert {each.call_id for each in asked_for if each.decision is None} == {each.call_id for each in waiting}
    # What was approved beside a call that still waits is not made yet.
    open_ = {each.message_id for each in waiting}
    made = [each for each in asked_for if each.decision == "approve" and each.message_id not in open_]
    assert sorted(args["to"] for name, args in sent if name == "send_mail") == sorted(each.args["to"] for each in made)


async def _pending(analyst: Analyst) -> list[Approval]:
    with suppress(ThreadNotFound):
        return await analyst.approvals.pending("t1", user_id=analyst.settings.user)
    return []
