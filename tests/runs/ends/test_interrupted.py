"""What a run was writing when it was stopped or failed is part of the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from longthread.llm.chat import Chunk
from longthread.llm.failures import StreamTruncated
from longthread.model.entry import Draft, Entry
from longthread.model.ids import new_id
from longthread.model.language import moment_of
from longthread.model.run import Event
from longthread.runs.analyst import Analyst
from longthread.runs.worker import may_be_alive
from longthread.settings import Settings
from longthread.store import log, run_events, runs
from longthread.testing import ScriptedModel

DEAD = "ffffffff-dead"
HALVES = {"en": ("Tell me of rockets.", "Falcon 9 is the", "continue"), "zh": ("讲讲火箭。", "长征五号是", "继续")}


class Halting(ScriptedModel):
    """Says the beginning of its first reply, and then fails, or waits for a stop."""

    half = ""
    waits = False
    said = None

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Chunk]:
        if self.half:
            half, self.half = self.half, ""
            yield Chunk(half)
            if self.waits:
                assert self.said is not None
                self.said.set()
                await asyncio.Event().wait()
            raise StreamTruncated("The reply ended in the middle.")
        async for chunk in super().stream(*args, **kwargs):
            yield chunk


def opened(address: str, folder: Path, model: ScriptedModel) -> Any:
    settings = Settings.of(data_dir=folder, database=address, model="x", retry_attempts=0)
    return Analyst.open(settings, models=lambda *_: model)


async def entries_of(analyst: Analyst, thread_id: str) -> list[Entry]:
    async with analyst.store.reading() as tx:
        thread = await log.find_thread(tx, thread_id, user_id="ada")
        return await log.branch(tx, thread_id, thread.tip, limit=99)


def seen_by(model: ScriptedModel) -> str:
    return "\n".join(f"{message.role}: {message.text}" for message in model.calls[-1].messages)


@pytest.mark.parametrize("language", HALVES)
async def test_what_a_failed_run_was_writing_is_gone_on_from(store_address: str, tmp_path: Path, language: str) -> None:
    question, half, word = HALVES[language]
    model = Halting([{"finish": "And so on."}])
    model.half = half
    async with opened(store_address, tmp_path, model) as analyst:
        end = await (await analyst.ask(question, user_id="ada", source="demo", thread_id="t")).wait()
        assert (end.type, end.data["unfinished"]) == ("failed", half)
        said = (await entries_of(analyst, "t"))[-1]
        assert (said.role, said.kind, said.text, said.id) == ("assistant", "interrupted", half, end.data["message_id"])
        state = await analyst.threads.state("t", user_id="ada")
        assert state["messages"][-1]["content"] == half
        end = await (await analyst.ask(word, user_id="ada", source="demo", thread_id="t")).wait()
        assert (end.type, end.data["answer"]) == ("finished", "And so on.")
        mark = "中断" if language == "zh" else "Interrupted here"
        assert f"assistant: {half}\n\n[" in seen_by(model) and mark in seen_by(model)
        async with analyst.store.reading() as tx:
            last = await runs.last_run(tx, "t")
        assert last is not None and last.question == question, "it goes on with that question"
        assert [entry.text for entry in await entries_of(analyst, "t")][1] == half, "the mark is the view's alone"


async def test_what_a_stopped_run_was_writing_is_seen_by_the_next_question(store_address: str, tmp_path: Path) -> None:
    model = Halting([{"finish": "Of rockets."}])
    model.half, model.waits, model.said = "The first is", True, asyncio.Event()
    async with opened(store_address, tmp_path, model) as analyst:
        handle = await analyst.ask("Tell me.", user_id="ada", source="demo", thread_id="t")
        await model.said.wait()
        await analyst.runs.stop("t", user_id="ada")
        end = await handle.wait()
        assert (end.type, end.data["reason"], end.data["unfinished"]) == ("paused", "stopped", "The first is")
        await (await analyst.ask("Of what?", user_id="ada", source="demo", thread_id="t")).wait()
        kinds = [entry.kind for entry in await entries_of(analyst, "t")]
        assert kinds == ["question", "interrupted", "question", "answer"]
        assert "assistant: The first is\n\n[Interrupted" in seen_by(model)


async def test_thinking_is_no_part_of_it(store_address: str, tmp_path: Path) -> None:
    model = Halting([{"finish": "Yes."}])
    model.half = "<think>The secret plan"
    async with opened(store_address, tmp_path, model) as analyst:
        end = await (await analyst.ask("Tell me.", user_id="ada", source="demo", thread_id="t")).wait()
        assert end.type == "failed" and "unfinished" not in end.data
        assert [entry.kind for entry in await entries_of(analyst, "t")] == ["question"]


async def died(analyst: Analyst, thread_id: str, text: str) -> str:
    """A run whose process died while it wrote; the teller had stored this much. Returns the reply's id."""
    async with analyst.store.writing() as tx:
        thread = await log.find_thread(tx, thread_id, user_id="ada")
        tip, size = await log.position(tx, thread.id)
        question = {"kind": "question", "run": DEAD, "source": "demo"}
        asked = Draft(id=new_id(), role="user", text="Next?", run_id=DEAD, metadata=question)
        await log.append(tx, thread.id, [asked], tip=tip, size=size)
        plan = runs.NewRun(DEAD, "Next?", "demo", "x", "auto", 5, question_seq=size + 1)
        await runs.begin(tx, thread.id, plan, owner="gone/1/x", alive=may_be_alive, tells=True)
        at = moment_of("2026-01-01T00:00:00Z", "at")
        assert at is not None
        data = {"message_id": (message_id := new_id()), "delta": text}
        await run_events.append_events(tx, [Event(thread.id, plan.run_id, 2, "text", data, at)])
    return message_id


@pytest.mark.parametrize("how", ["asked", "stopped"])
async def test_what_a_dead_process_was_writing_stays(store_address: str, tmp_path: Path, how: str) -> None:
    model = ScriptedModel([{"finish": "One."}, {"finish": "Two."}])
    async with opened(store_address, tmp_path, model) as analyst:
        await (await analyst.ask("First?", user_id="ada", source="demo", thread_id="t")).wait()
        message_id = await died(analyst, "t", "Half of it")
        if how == "stopped":
            await analyst.runs.stop("t", user_id="ada")
        else:
            await (await analyst.ask("Second?", user_id="ada", source="demo", thread_id="t")).wait()
            assert "assistant: Half of it\n\n[" in seen_by(model)
        left = [entry for entry in await entries_of(analyst, "t") if entry.kind == "interrupted"]
        assert [(entry.text, entry.id) for entry in left] == [("Half of it", message_id)]
        async with analyst.store.reading() as tx:
            run = await runs.find_run(tx, "t", DEAD)
        assert run is not None and run.outcome["unfinished"] == "Half of it"


async def test_a_call_that_is_repeated_leaves_nothing_beside_its_answer(store_address: str, tmp_path: Path) -> None:
    model = ScriptedModel([{"finish": "One."}, {"finish": "Two."}])
    async with opened(store_address, tmp_path, model) as analyst:
        await (await analyst.ask("First?", user_id="ada", source="demo", thread_id="t")).wait()
        await died(analyst, "t", "Half of it")
        handle = await analyst.runs.resume("t", user_id="ada")
        assert (await handle.wait()).data["answer"] == "Two."
        kinds = [entry.kind for entry in await entries_of(analyst, "t")]
        assert kinds == ["question", "answer", "question", "answer"]
