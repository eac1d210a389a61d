"""Measures what a long conversation's model is sent: its size, whether it is whole, and how much of it is stable."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longthread.builtin.memory_tools import recall_tool
from longthread.context.window import item_of
from longthread.errors import InvalidInput
from longthread.messages.langchain import from_langchain
from longthread.model.run import Run
from longthread.model.thread import Scope
from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.store import runs
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.transfer.threads import thread_ids
from longthread.testing.langchain import ScriptedChatModel
from longthread.view.tokens import estimate, family_of
from longthread_evals.long_conversation import Fact, Language, Turn, make_source, reply, turns

THREAD = "context"
"""The conversation's id."""
MODEL = "eval:gpt-5"
"""The model's name, which selects the family for token estimates."""

_FAMILY = family_of(MODEL)

WatchProgress = Callable[[int, int, str], None]


@dataclass(slots=True)
class ViewWatch:
    """Measures each call. A prompt is the system's message with the tools, then messages; all sizes are estimates.

    `kept` counts the tokens of a prompt that the prompt before began with, message by message; `before` those of the
    prompts before, `sent` those of the prompts themselves.
    """

    views: list[int] = field(default_factory=list)
    orphans: int = 0
    changed_thinking: int = 0
    kept: int = 0
    before: int = 0
    sent: int = 0
    text: str = ""
    _last: Sequence[tuple[str, int]] = ()
    _thinking: set[str] = field(default_factory=set)
    _sizes: dict[str, int] = field(default_factory=dict)

    def saw(self, messages: Sequence[BaseMessage]) -> None:
        prompt = [self._measure_message(message) for message in messages]
        self.views.append(sum(size for _, size in prompt[1:]))
        self.orphans += orphans(messages)
        self.changed_thinking += sum(block not in self._thinking for block in _thinking(messages))
        if self._last:
            same = 0
            for (one, size), (other, _) in zip(self._last, prompt, strict=False):
                if one != other:
                    break
                same += size
            self.kept += same
            self.before += sum(size for _, size in self._last)
            self.sent += sum(size for _, size in prompt)
        self._last = prompt
        self.text = "\n".join(body for body, _ in prompt)

    def note_reply(self, message: AIMessage) -> AIMessage:
        """Note a reply: its thinking must come back unchanged, or not at all."""
        self._thinking.update(_thinking([message]))
        return message

    def _measure_message(self, message: BaseMessage) -> tuple[str, int]:
        calls = message.tool_calls if isinstance(message, AIMessage) else getattr(message, "tool_call_id", None)
        body = json.dumps([message.type, message.content, calls], ensure_ascii=False)
        if body not in self._sizes:
            ours = from_langchain(message)
            is_system = ours.role == "system"
            self._sizes[body] = estimate(ours.text, _FAMILY) if is_system else item_of(ours, family=_FAMILY).tokens
        return body, self._sizes[body]


def _thinking(messages: Sequence[BaseMessage]) -> list[str]:
    blocks = [block for message in messages if isinstance(message.content, list) for block in message.content]
    return [json.dumps(b, sort_keys=True) for b in blocks if isinstance(b, dict) and b.get("type") == "thinking"]


def orphans(messages: Sequence[BaseMessage]) -> int:
    """Count calls without a result right after them, unread ones too, and results without a call."""
    open_: Counter[str | None] = Counter()
    lost = 0
    for message in messages:
        if isinstance(message, ToolMessage):
            lost += open_[message.tool_call_id] == 0
            open_ -= Counter([message.tool_call_id])
        else:
            lost += open_.total()
            calls = [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
            open_ = Counter(call["id"] for call in calls)
    return lost + open_.total()


@dataclass(frozen=True, slots=True)
class WatchReport:
    """The measures. `cached` is the part of everything sent that the call before had sent too."""

    turns: int
    calls: int
    max_view_tokens: int
    budget: int
    over_budget: int
    orphans: int
    changed_thinking: int
    prefix_reuse: float
    cached: float
    planted: int
    recalled: int
    in_view: int

    def to_json(self) -> dict[str, Any]:
        left_out = ("cached", "changed_thinking")
        return {name: getattr(self, name) for name in self.__slots__ if name not in left_out}


async def watch(
    folder: Path,
    *,
    count: int,
    window: int,
    language: Language = "en",
    seed: int = 0,
    database: str | None = None,
    told: WatchProgress | None = None,
) -> WatchReport:
    """Play a conversation of `count` turns through an analyst whose model has a window of `window` tokens.

    Its store and its source are made in `folder`, unless the store's address is given as `database`. `told` is called
    with the progress. Raises InvalidInput: the store has a conversation already, or a turn ended without an answer,
    such as for too small a window.
    """
    source = folder / "events.sqlite"
    make_source(source, language, seed)
    seen, chance, planted = ViewWatch(), random.Random(seed + 1), list[Fact]()
    settings = Settings.load(
        env_file=None,
        data_dir=folder,
        database=database or str(folder / "context.db"),
        model=MODEL,
        memory_context_window=window,
        sql_rows=200,
        read_only=database is not None and Settings.load().read_only,  # a store made here is written to
        memory_enable_summary=False,  # the measured model is the only one
    )
    async with open_store(settings.database, read_only=settings.read_only) as store:
        await _expect_empty(store)
        player = _Player(seen, chance, language)
        model = ScriptedChatModel(player.reply)
        analyst = Analyst(store, settings, models=lambda name, _: model)
        budgets: list[int] = []
        for number, turn in enumerate(turns(count, language, seed)):
            player.turn = turn
            handle = await analyst.ask(
                turn.question, thread_id=THREAD, source=str(source), protocol="native", user_id=settings.user
            )
            if (end := await handle.wait()).type != "finished":
                problem = end.data.get("error", {}).get("message", end.type)
                raise InvalidInput(reason=f"Turn {number + 1} of the conversation did not end in an answer. {problem}")
            budgets += await _budgets(store)
            model.calls.clear()
            planted += [turn.fact] if turn.fact else []
            if told is not None:
                told(number + 1, count, "")
        recalled = await _count_recalled(analyst, planted)
        await analyst.close()
    return _report(seen, budgets, planted, recalled, count)


@dataclass(slots=True)
class _Player:
    seen: ViewWatch
    chance: random.Random
    language: Language
    turn: Turn | None = None
    calls: int = 0

    def reply(self, messages: list[BaseMessage]) -> AIMessage:
        assert self.turn is not None
        self.seen.saw(messages)
        asked = max(n for n, message in enumerate(messages) if message.type == "human")
        done = sum(isinstance(message, ToolMessage) for message in messages[asked:])
        self.calls += 1
        return self.seen.note_reply(reply(self.turn, done, f"call_{self.calls}", self.chance, self.language))


async def _expect_empty(store: Driver) -> None:
    async with store.reading() as tx:
        if await thread_ids(tx, limit=1):
            raise InvalidInput(
                reason=f"{store.where} has conversations already, and the one that is measured would stay among them. "
                "Give --database-url an empty or a new store, or leave it out."
            )


async def _budgets(store: Driver) -> list[int]:
    """Return the view budgets of the thread's last run, from its steps."""
    async with store.reading() as tx:
        run: Run | None = await runs.last_run(tx, THREAD)
        steps = await runs.steps_of(tx, run) if run is not None else []
    return [step.usage["budget"] for step in steps if step.kind == "model"]


async def _count_recalled(analyst: Analyst, planted: Sequence[Fact]) -> int:
    """Count the facts that `recall_memory` finds after the conversation."""
    settings = analyst.settings
    scope, top_k = Scope(settings.user, THREAD), settings.memory_recall_top_k
    tool = recall_tool(analyst.recaller, scope, thread_id=THREAD, agent_id=None, top_k=top_k, before=None)
    count = 0
    for fact in planted:
        observation = await tool.call({"query": fact.asked})
        found = observation["data"]["found"]
        texts = [each["text"] for hit in found for each in (hit, *hit.get("around", ()))]
        count += any(fact.value in text for text in texts)
    return count


def _report(seen: ViewWatch, budgets: Sequence[int], planted: Sequence[Fact], recalled: int, count: int) -> WatchReport:
    return WatchReport(
        turns=count,
        calls=len(seen.views),
        max_view_tokens=max(seen.views, default=0),
        budget=min(budgets, default=0),
        over_budget=sum(view > budget for view, budget in zip(seen.views, budgets, strict=True)),
        orphans=seen.orphans,
        changed_thinking=seen.changed_thinking,
        prefix_reuse=round(seen.kept / seen.before, 4) if seen.before else 1.0,
        cached=round(seen.kept / seen.sent, 4) if seen.sent else 1.0,
        planted=len(planted),
        recalled=recalled,
        in_view=sum(fact.value in seen.text for fact in planted),
    )
