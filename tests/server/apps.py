"""LangGraph applications, whose threads a server shows."""

from __future__ import annotations

from collections.abc import Sequence

from langchain.agents import create_agent
from langchain_core.tools import tool

from longthread.langgraph import LongthreadSaver
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
