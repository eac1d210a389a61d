"""A support agent whose conversation outgrows its model's window, is restarted, and still knows what was said first.

    python examples/long_conversation.py [conversations.db | postgresql://…]

It needs no key: `Support` stands for a chat model. Put `init_chat_model("…")` in its place for a real one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import BaseMessage

from longthread.langgraph import LongthreadSaver, LongthreadStore, MemoryMiddleware, recall_tool
from longthread.testing import ScriptedChatModel

TURNS = 100
PROMPT = "You are a patient support agent."
THREAD: Any = {"configurable": {"thread_id": "ada"}}


def keep(note: str, runtime: ToolRuntime) -> str:
    """Keep something about the customer for all conversations."""
    assert runtime.store is not None
    runtime.store.put(("customers", "ada"), "note", {"text": note})
    return "Kept."


class Support:
    """Answers by rules, as a model would: it looks up what it does not see any more."""

    def __init__(self) -> None:
        self.most = 0

    def __call__(self, messages: list[BaseMessage]) -> Any:
        self.most = max(self.most, len(messages))
        last = messages[-1]
        if messages[0].text != PROMPT:  # asked for the summary of what leaves the window
            return "Invoices of several orders were wrong."
        if last.type == "tool":
            text = str(last.text)
            return {"finish": "It is 192.0.2.7." if "192.0.2.7" in text else "Noted."}
        if "Which address" in last.text:
            return {"action": "recall_memory", "args": {"query": "address of the staging server"}}
        if "allergic" in last.text:
            return {"action": "keep", "args": {"note": str(last.text)}}
        return {"finish": "All right. " * 8}


def open_agent(saver: LongthreadSaver, model: Support) -> tuple[Any, MemoryMiddleware]:
    """The agent: a window of 4,000 tokens, and at most 60 messages in the state."""
    memory = MemoryMiddleware(saver, context_window=4_000, max_messages_per_thread=60)
    agent = create_agent(
        ScriptedChatModel(model),
        [keep, recall_tool(saver)],
        system_prompt=PROMPT,
        checkpointer=saver,
        store=LongthreadStore.of(saver),
        middleware=[memory],
    )
    return agent, memory


def talk(address: str) -> dict[str, Any]:
    """A long conversation in two processes' lives; what came of it."""
    model = Support()
    with LongthreadSaver.from_conn_string(address) as saver:
        agent, memory = open_agent(saver, model)
        agent.invoke({"messages": [("user", "Our staging server has the address 192.0.2.7.")]}, THREAD)
        agent.invoke({"messages": [("user", "By the way, I am allergic to nuts.")]}, THREAD)
        for n in range(TURNS):
            agent.invoke({"messages": [("user", f"Ticket {n}: the invoice of order {1000 + n} is wrong.")]}, THREAD)
            if n % 10 == 9:
                memory.settle()  # nobody waits between these turns, and a real model takes its time

    with LongthreadSaver.from_conn_string(address) as saver:  # another process, days later
        agent, _ = open_agent(saver, model)
        state = agent.invoke({"messages": [("user", "Which address did our staging server have?")]}, THREAD)
        [note] = LongthreadStore.of(saver).search(("customers",), query="allergies and nuts", limit=1)
        return {
            "answer": state["messages"][-1].text,
            "messages_in_state": len(state["messages"]),
            "most_messages_in_a_prompt": model.most,
            "note": note.value["text"],
        }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        given = sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "conversations.db")
        for name, value in talk(given).items():
            sys.stdout.write(f"{name}: {value}\n")
