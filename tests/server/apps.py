"""What a server shows: threads of LangGraph applications, agents that ask each other, calls that wait for approval."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool

from longthread import Catalog
from longthread.context.forks import Fork
from longthread.context.window_cache import WindowCache
from longthread.langgraph import LongthreadSaver
from longthread.runs import start
from longthread.runs.start import RunRequest
from longthread.runs.worker import RunWorker, here
from longthread.store import runs
from longthread.store.open import open_store
from longthread.testing import ScriptedChatModel

SCRIPT = [
    {"thought": "I look at the sky.", "action": "weather", "args": {"city": "上海"}},
    {"finish": "Sunny in **上海**."},
    {"finish": "You are welcome."},
]


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}."


def talked(address: str, thread_id: str, questions: Sequence[str] = ("上海天气怎么样？", "Thank you")) -> None:
    """Asks an agent these questions, one after another; its thread is in the store."""
    model = ScriptedChatModel(SCRIPT)
    with LongthreadSaver.from_conn_string(address) as saver:
        agent = create_agent(model, [weather], system_prompt="Be brief.", checkpointer=saver)
        for question in questions:
            agent.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": thread_id}})


CLERK: list[dict[str, object]] = [
    {
        "kind": "tool",
        "name": "send_mail",
        "type": "code",
        "schema": {
            "name": "send_mail",
            "description": "Sends a mail. 发送邮件。",
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
        },
        "implementation": {
            "runtime": "python",
            "approve": True,
            "code": 'def execute(to):\n    return {"sent": to}',
        },
    },
    {"kind": "skill", "name": "mail", "tools": [{"tool": "send_mail", "required": True}]},
    {"kind": "agent", "name": "clerk", "system_prompt": "You write mails.", "skills": ["mail"]},
]
"""An agent whose tool is approved."""

HELPER: dict[str, object] = {
    "kind": "agent",
    "name": "研究员",
    "description": "查资料。",
    "system_prompt": "You research.",
}
EDITOR: dict[str, object] = {
    "kind": "agent",
    "name": "editor",
    "description": "Writes reports.",
    "system_prompt": "You edit.",
    "sub_agents": ["研究员", "clerk"],
}
"""An agent that asks two others."""
ASK_HELPER, ASK_CLERK = "ask_yan_jiu_yuan", "ask_clerk"
"""The tools by which it asks them."""


def define(address: str, *items: dict[str, object]) -> None:
    """Put definitions into the catalog. In a thread of its own: a browser's loop may run in this one."""

    async def apply() -> None:
        async with open_store(address) as store:
            await Catalog(store).apply(items)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, apply()).result()


def orphaned(
    address: str, monkeypatch: pytest.MonkeyPatch, *, claimable: bool = True, place: Fork | None = None
) -> str:
    """The id of a run of the thread t1, whose process has died. If it is not `claimable`, no server goes on with it."""
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    monkeypatch.setattr("longthread.runs.worker.new_worker", lambda: f"{here()}/{dead.pid}/x")

    async def ask() -> str:
        async with open_store(address) as store:
            given = RunRequest("t1", "default", "How many?", "demo", "f", "demo", "auto", 12, place=place)
            started = await start.begin(store, given, WindowCache(200), RunWorker(store))
            if not claimable:
                async with store.writing() as tx:
                    await runs.give_back(tx, started.hold.lease, claimable=False)
            return started.run.id

    with ThreadPoolExecutor(1) as pool:
        run_id = pool.submit(asyncio.run, ask()).result()
    monkeypatch.undo()
    return run_id


def define_clerk(address: str) -> None:
    """Put the clerk into the catalog."""
    define(address, *CLERK)


def played(messages: Sequence[BaseMessage]) -> Any:
    """What the editor, those whom it asks, and the analyst say, each in its turn."""
    last = max(place for place, each in enumerate(messages) if isinstance(each, HumanMessage))
    said = sum(isinstance(each, AIMessage) for each in messages[last:])
    parts = next((part for begins, part in PARTS.items() if str(messages[0].text).startswith(begins)), CHARTED)
    return parts[min(said, len(parts) - 1)]


def _call(action: str, **args: object) -> dict[str, Any]:
    return {"thought": "", "action": action, "args": args}


LAUNCHES = (
    "SELECT column1 AS \"国家\", column2 AS \"次数\" FROM (VALUES ('美国', 44), ('中国', 39), ('俄罗斯联邦', 18))"
)
CHARTED: list[Any] = [
    _call("run_sql", sql=LAUNCHES),
    _call("chart", mark="bar", x="国家", y="次数", title="各国发射次数 <b>"),
    _call("chart", mark="bar", x="国", y="次"),
    {"finish": "**44** [q1]."},
]
PARTS: dict[str, list[Any]] = {
    "You edit": [
        [_call(ASK_HELPER, task="查一下。"), _call(ASK_CLERK, task="给 Ada 写信。")],
        {"finish": "It is **asked**."},
    ],
    "You research": [{"finish": "美国 **44** 次。"}],
    "You write mails": [_call("send_mail", to="ada"), {"finish": "**Sent**."}],
}
