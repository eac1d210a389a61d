"""LangGraph applications, whose threads a server shows, and an agent whose calls wait for approval."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from langchain.agents import create_agent
from langchain_core.tools import tool

from longthread.catalog import Catalog
from longthread.langgraph import LongthreadSaver
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


def define_clerk(address: str) -> None:
    """Put the clerk into the catalog. In a thread of its own: a browser's loop may run in this one."""

    async def define() -> None:
        async with open_store(address) as store:
            await Catalog(store).apply(CLERK)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, define()).result()
