"""Several savers on one thread: what one of them remembers, and what the others have done meanwhile."""

from __future__ import annotations

import asyncio
import io
import operator
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph._internal._constants import INTERRUPT, NULL_TASK_ID
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt
from tests.langgraph.counting import Counting
from typing_extensions import TypedDict

from longthread.errors import ThreadConflict
from longthread.langgraph import LongthreadSaver
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.model.entry import Draft
from longthread.store import checkpoints, log
from longthread.store.driver import Driver
from longthread.store.maintenance.deletions import prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.store.transfer.archive import export_lines
from longthread.store.transfer.archive_reader import ImportTarget, import_threads

AT: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def _checkpoint() -> Any:
    return {**empty_checkpoint(), "id": str(uuid6())}


def _metadata(step: int) -> Any:
    return {"source": "loop", "step": step, "parents": {}}


def _answering(saver: LongthreadSaver) -> Any:
    def answer(state: MessagesState) -> dict[str, Any]:
        asked = state["messages"][-1]
        return {"messages": [AIMessage(f"re: {asked.content}", id=f"a-{asked.id}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def _question(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, id=text)]}


def _texts(messages: list[Any]) -> list[str]:
    return [message.content for message in messages]


async def test_what_another_process_wrote_for_a_task_is_kept(store: Driver, second: Driver) -> None:
    ours, theirs = LongthreadSaver(store), LongthreadSaver(second)
    first = await ours.aput(AT, _checkpoint(), _metadata(0), {})
    await ours.aput_writes(first, [("__error__", "boom")], "task")
    await theirs.aget_tuple(AT)
    await theirs.aput_writes(first, [("ch", "value")], "task")
    found = await ours.aget_tuple(AT)
    assert found is not None
    assert found.pending_writes == [("task", "__error__", "boom"), ("task", "ch", "value")]
    last = await ours.aput(found.config, _checkpoint(), _metadata(1), {})
    again = await ours.aget_tuple(first)
    assert again is not None
    assert again.pending_writes == found.pending_writes
    history = await ours.aget_delta_channel_history(config=last, channels=["ch"])
    assert history == {"ch": {"writes": [("task", "ch", "value")]}}


def _all_of(value: list[str] | None, writes: list[list[str]]) -> list[str]:
    return [*(value or []), *(item for items in writes for item in items)]


class _Log(TypedDict):
    log: Annotated[list[str], DeltaChannel(_all_of)]


def _asking(saver: LongthreadSaver) -> Any:
    async def ask(_: _Log) -> dict[str, Any]:
        said = interrupt("?")
        await asyncio.sleep(0)
        return {"log": [said]}

    async def end(_: _Log) -> dict[str, Any]:
        return {"log": ["end"]}

    builder = StateGraph(_Log)
    builder.add_node("ask", ask)
    builder.add_node("end", end)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "end")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("savers", ["one", "two"])
async def test_of_two_that_answer_one_interrupt_the_winner_is_what_is_read(
    store: Driver, second: Driver, savers: str
) -> None:
    for number in range(6):
        at: Any = {"configurable": {"thread_id": f"race-{number}"}}
        ours = _asking(LongthreadSaver(store))
        theirs = _asking(LongthreadSaver(second)) if savers == "two" else ours
        await ours.ainvoke({"log": ["in"]}, at)
        _wait_for_each_other(*{id(graph): graph.checkpointer for graph in (ours, theirs)}.values())
        answers = (graph.ainvoke(Command(resume=said), at) for graph, said in ((ours, "1"), (theirs, "2")))
        found = await asyncio.gather(*answers, return_exceptions=True)
        won = [each["log"] for each in found if isinstance(each, dict)]
        assert [type(each) for each in found if not isinstance(each, dict)] == [ThreadConflict]
        state = await _asking(LongthreadSaver(second)).aget_state(at)
        assert [state.values["log"]] == won


async def test_a_thread_that_was_deleted_and_brought_back_by_another_process_is_read_anew(
    store: Driver, second: Driver
) -> None:
    ours, theirs = LongthreadSaver(store), LongthreadSaver(second)
    await _answering(ours).ainvoke(_question("one"), AT)
    file = io.BytesIO()
    async with second.reading() as tx:
        async for line in export_lines(tx, ["t"], lambda *_: None):
            file.write(line)
    await _answering(ours).ainvoke(_question("two"), AT)
    await theirs.adelete_thread("t")
    file.seek(0)
    await import_threads(second, file, "an export", ImportTarget("default"), lambda *_: None)
    await _answering(theirs).ainvoke(_question("other"), AT)
    said = ["one", "re: one", "other", "re: other"]
    assert _texts((await _answering(ours).aget_state(AT)).values["messages"]) == said
    await _answering(ours).ainvoke(_question("last"), AT)
    state = await _answering(LongthreadSaver(second)).aget_state(AT)
    assert _texts(state.values["messages"]) == [*said, "last", "re: last"]


async def test_messages_that_are_put_back_after_retention_has_deleted_them_are_written_again(store: Driver) -> None:
    saver = LongthreadSaver(store)
    for number in range(6):
        await _answering(saver).ainvoke(_question(f"q{number}"), AT)
    said = (await _answering(saver).aget_state(AT)).values["messages"]
    await _answering(saver).aupdate_state(AT, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    policy = RetentionPolicy(entries_before="9999-01-01T00:00:00+00:00", window=2)
    pruned = await prune(store, Retention(policy, CheckpointKeeper(), lambda _: False), lambda *_: None, apply=True)
    assert pruned.rows["entries"] > 0
    await _answering(saver).aupdate_state(AT, {"messages": said})
    for each in (saver, LongthreadSaver(store)):
        assert _texts((await _answering(each).aget_state(AT)).values["messages"]) == _texts(said)


async def test_a_value_that_is_changed_while_it_is_being_stored_is_stored_as_it_was_given(store: Driver) -> None:
    saver = LongthreadSaver(store)
    first = await saver.aput(AT, _checkpoint(), _metadata(0), {})
    came, written = {"a"}, ["x"]
    checkpoint = {**_checkpoint(), "channel_values": {"join": came}, "channel_versions": {"join": 1}}
    async with store.writing() as tx:
        await log.position(tx, "t")
        storing = asyncio.create_task(saver.aput(first, checkpoint, _metadata(1), {"join": 1}))
        writing = asyncio.create_task(saver.aput_writes(first, [("ch", written)], "task"))
        while not _both_wait(storing, writing):  # noqa: ASYNC110 - turn by turn
            await asyncio.sleep(0)
        came.add("b")
        written.append("y")
    stored = await storing
    await writing
    found, parent = await saver.aget_tuple(stored), await saver.aget_tuple(first)
    assert found is not None
    assert parent is not None
    assert found.checkpoint["channel_values"] == {"join": {"a"}}
    assert parent.pending_writes == [("task", "ch", ["x"])]


def _both_wait(*tasks: asyncio.Task[Any]) -> bool:
    """Whether they have begun, and wait for something."""
    return all(task.get_coro().cr_await is not None for task in tasks)  # type: ignore[union-attr]


async def test_what_is_remembered_of_a_thread_is_only_trusted_while_it_is_so(store: Driver, second: Driver) -> None:
    counting = Counting(store)
    graph = _answering(LongthreadSaver(counting))
    await graph.ainvoke(_question("one"), AT, durability="sync")
    counting.reset()
    await graph.ainvoke(_question("two"), AT, durability="sync")
    assert counting.statements["hold_known_place"] == counting.writes >= 3
    assert counting.statements["select_place"] == 0

    async def meanwhile(name: str, say: str) -> None:
        async with second.writing() as tx:
            tip, _ = await log.position(tx, "t")
            await log.extend(tx, "t", [Draft(id=name, role="user", text=say)])
            await log.set_tip(tx, "t", tip)

    saver = LongthreadSaver(counting)
    found = await saver.aget_tuple(AT)
    assert found is not None
    messages = found.checkpoint["channel_values"]["messages"]
    config = found.config
    for number in range(3):
        counting.reset()
        messages = [*messages, HumanMessage(f"m{number}", id=f"m{number}")]
        config = await saver.aput(
            config,
            {**_checkpoint(), "channel_values": {"messages": messages}, "channel_versions": {"messages": number + 9}},
            _metadata(number),
            {"messages": number + 9},
        )
        assert counting.statements["select_place"] == (0 if number == 1 else 1)
        if number == 1:
            # It has the id of what is put next, and says something else.
            await meanwhile("m2", "somebody else's")
    again = await LongthreadSaver(second).aget_tuple(AT)
    assert again is not None
    assert _texts(again.checkpoint["channel_values"]["messages"]) == _texts(messages)
    async with second.reading() as tx:
        branch = await log.branch(tx, "t", (await log.position(tx, "t"))[0])
        assert [entry.text for entry in branch] == _texts(messages)


async def test_what_a_command_says_again_is_no_rival(store: Driver, second: Driver) -> None:
    await LongthreadSaver(store).aput(AT, _checkpoint(), _metadata(0), {})
    for driver, said in ((store, {"a", "b"}), (second, {"c"})):
        saver = LongthreadSaver(driver)
        found = await saver.aget_tuple(AT)
        assert found is not None
        at: Any = {"configurable": {**AT["configurable"], "checkpoint_id": found.checkpoint["id"]}}
        await saver.aput_writes(at, [("tags", said)], NULL_TASK_ID)


@pytest.mark.parametrize("savers", ["one", "two"])
async def test_what_an_update_wrote_that_failed_is_no_rival(store: Driver, second: Driver, savers: str) -> None:
    ours = _answering(LongthreadSaver(store))
    theirs = _answering(LongthreadSaver(second)) if savers == "two" else ours
    await ours.ainvoke(_question("one"), AT)
    said = (await ours.aget_state(AT)).values["messages"]
    with pytest.raises(ValueError, match="doesn't exist"):
        await ours.aupdate_state(AT, {"messages": [RemoveMessage(id="none")]}, as_node="answer")
    await theirs.aupdate_state(AT, {"messages": [RemoveMessage(id=said[-1].id)]}, as_node="answer")
    for each in (ours, theirs, _answering(LongthreadSaver(store))):
        assert _texts((await each.aget_state(AT)).values["messages"]) == ["one"]


def _joined(values: list[int], writes: list[list[int]]) -> list[int]:
    said = [one for each in writes for one in each]
    if any(one < 0 for one in said):
        raise ValueError("negative")
    return values + said


def _joined_any(values: list[Any], writes: list[list[Any]]) -> list[Any]:
    return [*values, *(one for each in writes for one in each)]


class _Logged(TypedDict):
    log: Annotated[list[int], DeltaChannel(_joined)]


def _logging(saver: Any) -> Any:
    """A graph whose list is made of what is written to it, and which refuses a negative number."""
    builder = StateGraph(_Logged)
    builder.add_node("work", lambda state: {"log": [1]})
    builder.add_edge(START, "work")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("savers", ["one", "two"])
@pytest.mark.parametrize("reads", [True, False])
async def test_after_an_update_that_failed_another_of_what_is_made_of_writes_succeeds(
    store: Driver, second: Driver, savers: str, reads: bool
) -> None:
    ours = _logging(LongthreadSaver(store))
    theirs = _logging(LongthreadSaver(second)) if savers == "two" else ours
    await ours.ainvoke({"log": [0]}, AT)
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            await ours.aupdate_state(AT, {"log": [-1]}, as_node="work")
    if reads:
        assert (await theirs.aget_state(AT)).values["log"] == [0, 1]
    await theirs.aupdate_state(AT, {"log": [2]}, as_node="work")
    for each in (ours, theirs, _logging(LongthreadSaver(store))):
        assert (await each.aget_state(AT)).values["log"] == [0, 1, 2]
    await ours.aupdate_state(AT, {"log": [3]}, as_node="work")
    await theirs.ainvoke({"log": [4]}, AT)
    for each in (ours, theirs, _logging(LongthreadSaver(store))):
        assert (await each.aget_state(AT)).values["log"] == [0, 1, 2, 3, 4, 1]
    past = [state.values["log"] async for state in ours.aget_state_history(AT)]
    assert past[0] == [0, 1, 2, 3, 4, 1] and [0, 1, 2] in past and [0, 1] in past


async def test_an_update_that_comes_late_is_refused_when_another_took_it_for_a_failed_one(store: Driver) -> None:
    saver = LongthreadSaver(store)
    graph = _logging(saver)
    await graph.ainvoke({"log": [0]}, AT)
    has_written, goes_on, put = asyncio.Event(), asyncio.Event(), saver.aput

    async def late(*given: Any) -> Any:
        has_written.set()
        await goes_on.wait()
        return await put(*given)

    saver.aput = late  # type: ignore[method-assign]
    first = asyncio.create_task(graph.aupdate_state(AT, {"log": [2]}, as_node="work"))
    await has_written.wait()
    saver.aput = put  # type: ignore[method-assign]
    await graph.aupdate_state(AT, {"log": [3]}, as_node="work")
    goes_on.set()
    with pytest.raises(ThreadConflict):
        await first
    for each in (graph, _logging(LongthreadSaver(store))):
        assert (await each.aget_state(AT)).values["log"] == [0, 1, 3]


def _wait_for_each_other(*savers: Any) -> None:
    """Two are at once when both have loaded before either goes on."""
    both = asyncio.Barrier(2)

    def waiting(load: Any) -> Any:
        async def loaded(config: Any) -> Any:
            found = await load(config)
            await both.wait()
            return found

        return loaded

    for saver in savers:
        saver.aget_tuple = waiting(saver.aget_tuple)


@pytest.mark.parametrize("savers", ["one", "two"])
async def test_of_two_updates_at_once_one_wins(store: Driver, second: Driver, savers: str) -> None:
    for number in range(6):
        at: Any = {"configurable": {"thread_id": f"race-{number}"}}
        ours = _answering(LongthreadSaver(store))
        theirs = _answering(LongthreadSaver(second)) if savers == "two" else ours
        await ours.ainvoke(_question("one"), at)
        _wait_for_each_other(*{id(graph): graph.checkpointer for graph in (ours, theirs)}.values())
        said = [[AIMessage(text, id="edit")] for text in ("1", "2")]
        updates = (
            graph.aupdate_state(at, {"messages": each}, as_node="answer")
            for graph, each in zip((ours, theirs), said, strict=True)
        )
        found = await asyncio.gather(*updates, return_exceptions=True)
        won = [each for each, outcome in zip(said, found, strict=True) if isinstance(outcome, dict)]
        assert [type(each) for each in found if not isinstance(each, dict)] == [ThreadConflict]
        state = await _answering(LongthreadSaver(second)).aget_state(at)
        assert [state.values["messages"][-1:]] == won


async def test_an_update_of_what_is_made_of_writes_has_a_rival_in_one_that_wrote_before(store: Driver) -> None:
    graph = _asking(LongthreadSaver(store))
    await graph.ainvoke({"log": ["in"]}, AT)
    saver = LongthreadSaver(store)
    both = [await saver.aget_tuple(AT) for _ in range(2)]
    for wrote, found in zip(("1", "2"), both, strict=True):
        assert found is not None
        at: Any = {"configurable": {**AT["configurable"], "checkpoint_id": found.checkpoint["id"]}}
        put = saver.aput_writes(at, [("log", [wrote])], "update", f"~{INTERRUPT}, 0000000000")
        if wrote == "1":
            await put
        else:
            with pytest.raises(ThreadConflict):
                await put


class _Parallel(TypedDict):
    log: Annotated[list[Any], DeltaChannel(_joined_any)]
    third: Annotated[list[Any], DeltaChannel(_joined_any)]
    made: Annotated[list[Any], DeltaChannel(_joined_any)]
    added: Annotated[list[Any], operator.add]


def _half_done(saver: Any, wrote: Sequence[str]) -> Any:
    """A graph of which one task is over and has written to these channels, while the other one waits for an answer."""
    builder = StateGraph(_Parallel)
    builder.add_node("a", lambda state: {"log": ["a"]})
    builder.add_node("b", lambda state: {name: ["b"] for name in wrote})
    builder.add_node("c", lambda state: {"log": [interrupt("?")]})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("a", "c")
    return builder.compile(checkpointer=saver)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("channels", [["log"], ["log", "added"], ["log", "made"], ["log", "added", "made"], ["made"]])
@pytest.mark.parametrize("wrote", [["log"], ["third", "log"]])
async def test_an_update_in_the_name_of_a_task_that_is_over_may_write_more_than_that_has(
    store: Driver, channels: list[str], wrote: list[str]
) -> None:
    found = []
    for saver in (InMemorySaver(), LongthreadSaver(store)):
        graph = _half_done(saver, wrote)
        await graph.ainvoke({"log": ["q"]}, AT)
        states = []
        for number in range(3):
            await graph.aupdate_state(AT, {name: [number] for name in channels}, as_node="b")
            states.append((await graph.aget_state(AT)).values)
        states.append(await graph.ainvoke(Command(resume="r"), AT))
        cold = saver if isinstance(saver, InMemorySaver) else LongthreadSaver(store)
        states.append((await _half_done(cold, wrote).aget_state(AT)).values)
        found.append(states)
    theirs, ours = found
    assert [ours[2].get(name, [])[-3:] for name in channels] == [[0, 1, 2]] * len(channels)
    if "made" in channels:
        # The other saver drops a write that stands where the task that is over has written another.
        for state in theirs:
            state["made"] = [0, *(one for one in state["made"] if one != 0)]
    assert ours == theirs


@pytest.mark.sampled(3)
@pytest.mark.parametrize("channels", [["log", "added"], ["log", "made"], ["made"]])
@pytest.mark.parametrize("wrote", [["log"], ["third", "log"]])
@pytest.mark.parametrize("savers", ["one", "two"])
async def test_of_two_updates_in_the_name_of_a_task_that_is_over_one_wins(
    store: Driver, second: Driver, savers: str, channels: list[str], wrote: list[str]
) -> None:
    for number in range(3):
        at: Any = {"configurable": {"thread_id": f"race-{number}"}}
        ours = _half_done(LongthreadSaver(store), wrote)
        theirs = _half_done(LongthreadSaver(second), wrote) if savers == "two" else ours
        await ours.ainvoke({"log": ["q"]}, at)
        _wait_for_each_other(*{id(graph): graph.checkpointer for graph in (ours, theirs)}.values())
        found = await asyncio.gather(
            *(
                graph.aupdate_state(at, {name: [said] for name in channels}, as_node="b")
                for graph, said in ((ours, "1"), (theirs, "2"))
            ),
            return_exceptions=True,
        )
        [won] = [said for said, outcome in zip(("1", "2"), found, strict=True) if isinstance(outcome, dict)]
        assert [type(each) for each in found if not isinstance(each, dict)] == [ThreadConflict]
        values = (await _half_done(LongthreadSaver(second), wrote).aget_state(at)).values
        assert [[one for one in values[name] if one in ("1", "2")] for name in channels] == [[won]] * len(channels)


async def test_an_old_message_that_is_changed_in_place_and_returned_is_stored(store: Driver) -> None:
    def redact(state: MessagesState) -> dict[str, Any]:
        first = state["messages"][0]
        first.content = "redacted"
        return {"messages": [first]}

    builder = StateGraph(MessagesState)
    builder.add_node("redact", redact)
    builder.add_edge(START, "redact")
    saver = LongthreadSaver(store)
    said = [HumanMessage(f"secret {number}", id=f"m{number}") for number in range(300)]
    graph: Any = builder.compile(checkpointer=saver)
    await graph.aupdate_state(AT, {"messages": said}, as_node=START)
    await graph.ainvoke({"messages": [HumanMessage("redact", id="last")]}, AT)
    for each in (saver, LongthreadSaver(store)):
        found = _texts((await _answering(each).aget_state(AT)).values["messages"])
        assert (len(found), found[0], found[1]) == (301, "redacted", "secret 1")


async def test_it_is_stored_too_if_it_changes_while_the_checkpoint_before_is_stored(store: Driver) -> None:
    is_redacted = asyncio.Event()

    class Saver(AsyncLongthreadSaver):
        waits = False

        async def _putting(self, given: Any, *more: Any) -> Any:
            putting = await super()._putting(given, *more)
            if self.waits and given.lists:  # they have been compared, and are not remembered yet
                await is_redacted.wait()
            return putting

        def _given_writes(self, config: Any, writes: Any, *more: Any) -> Any:
            given = super()._given_writes(config, writes, *more)
            if any(channel == "messages" and _texts(value) == ["redacted"] for channel, value in writes):
                is_redacted.set()
            return given

    def redact(state: MessagesState) -> dict[str, Any]:
        state["messages"][0].content = "redacted"
        return {"messages": [state["messages"][0]]}

    saver = Saver(store)
    builder = StateGraph(MessagesState)
    builder.add_node("redact", redact)
    builder.add_edge(START, "redact")
    graph: Any = builder.compile(checkpointer=saver)
    said = [HumanMessage(f"secret {number}", id=f"m{number}") for number in range(300)]
    await graph.aupdate_state(AT, {"messages": said}, as_node=START)
    saver.waits = True
    await graph.ainvoke({"messages": [HumanMessage("redact", id="last")]}, AT)
    found = _texts((await _answering(AsyncLongthreadSaver(store)).aget_state(AT)).values["messages"])
    assert (len(found), found[0], found[1]) == (301, "redacted", "secret 1")


async def test_what_the_tasks_of_a_refused_checkpoint_have_written_is_deleted(store: Driver, second: Driver) -> None:
    ours, theirs = LongthreadSaver(store), LongthreadSaver(second)
    await ours.aput(AT, _checkpoint(), _metadata(0), {})
    looked = [await saver.aget_tuple(AT) for saver in (ours, theirs)]
    from_: list[Any] = [found.config for found in looked if found is not None]
    refused = _checkpoint()
    # LangGraph stores checkpoints and what the tasks of the next step write side by side.
    at: Any = {"configurable": {**AT["configurable"], "checkpoint_id": refused["id"]}}
    await theirs.aput_writes(at, [("log", ["theirs"])], "task")
    async with store.reading() as tx:
        assert len(await checkpoints.writes(tx, "t", "", refused["id"])) == 1
    won = await ours.aput(from_[0], _checkpoint(), _metadata(1), {})
    await ours.aput_writes(won, [("log", ["ours"])], "task")
    with pytest.raises(ThreadConflict):
        await theirs.aput(from_[1], refused, _metadata(1), {})
    async with store.reading() as tx:
        assert await checkpoints.writes(tx, "t", "", refused["id"]) == []
    found = await theirs.aget_tuple(AT)
    assert found is not None and found.pending_writes == [("task", "log", ["ours"])]


async def test_what_tasks_have_written_stays_where_a_checkpoint_is_refused_that_is_there(
    store: Driver, second: Driver
) -> None:
    ours, theirs = LongthreadSaver(store), LongthreadSaver(second)
    first = await ours.aput(AT, _checkpoint(), _metadata(0), {})
    going_on = await ours.aget_tuple(AT)
    assert going_on is not None
    there = _checkpoint()
    at = await theirs.aput(first, there, _metadata(1), {})
    await theirs.aput(at, _checkpoint(), _metadata(2), {})
    await ours.aput_writes(at, [("log", ["ours"])], "task")
    with pytest.raises(ThreadConflict):
        await ours.aput(going_on.config, there, _metadata(1), {})
    found = await theirs.aget_tuple(at)
    assert found is not None and found.pending_writes == [("task", "log", ["ours"])]


async def test_checkpoints_that_were_pruned_are_not_remembered(store: Driver, second: Driver) -> None:
    ours, theirs = LongthreadSaver(store), LongthreadSaver(second)
    checkpoint = _checkpoint()
    first = await ours.aput(AT, checkpoint, _metadata(0), {})
    await ours.aput_writes(first, [("ch", "pruned")], "task 1")
    await ours.aprune(["t"], strategy="delete")
    # Somebody brings the same checkpoint back, as an import of what was taken over does, with as many writes.
    await theirs.aput(AT, checkpoint, _metadata(0), {})
    await theirs.aput_writes(first, [("ch", "theirs")], "task 2")
    await ours.aput_writes(first, [("ch", "ours")], "task 3")
    found = await theirs.aget_tuple(AT)
    assert found is not None
    assert found.pending_writes == [("task 2", "ch", "theirs"), ("task 3", "ch", "ours")]
