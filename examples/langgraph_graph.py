"""Build a plain StateGraph with memory: one node before the model, interrupts, and a fork from the past.

    python examples/langgraph_graph.py [conversations.db | postgresql://…]

A scripted model stands for a real one: put `init_chat_model("openai:gpt-5")` in its place.
"""

import sys
import tempfile
from pathlib import Path

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from longthread.langgraph import LongthreadSaver, MemoryMessagesState, memory_node
from longthread.testing import ScriptedChatModel

MODEL = ScriptedChatModel(lambda messages: f"I see {len(messages)} messages.")


def confirm(state):
    """Ask a person before the model is asked."""
    if "delete" in state["messages"][-1].text and interrupt("Delete it?") != "yes":
        return {"messages": [("user", "No, keep it.")]}
    return {}


def main(address: str) -> None:
    with LongthreadSaver.from_conn_string(address) as saver:
        memory = memory_node(saver, model=MODEL, context_window=2_000, max_messages_per_thread=40)
        builder = StateGraph(MemoryMessagesState)
        builder.add_node("confirm", confirm)
        builder.add_node("memory", memory)
        builder.add_node("model", lambda state: {"messages": [MODEL.invoke(memory.messages(state))]})
        builder.add_edge(START, "confirm")
        builder.add_edge("confirm", "memory")
        builder.add_edge("memory", "model")
        graph = builder.compile(checkpointer=saver)
        thread = {"configurable": {"thread_id": "ada-1"}}

        for n in range(20):
            state = graph.invoke({"messages": [("user", f"Note {n}: " + "a long story " * 20)]}, thread)
        print(f"After 20 questions: {state['messages'][-1].text}")

        waiting = graph.invoke({"messages": [("user", "Please delete note 7.")]}, thread)
        print(f"A person is asked: {waiting['__interrupt__'][0].value}")
        state = graph.invoke(Command(resume="no"), thread)
        print(f"The last question: {state['messages'][-2].text}")

        past = next(
            each for each in graph.get_state_history(thread) if each.next == () and len(each.values["messages"]) == 2
        )
        state = graph.invoke({"messages": [("user", "Another second note")]}, past.config)
        print(f"A fork after the first answer: {state['messages'][-1].text}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(sys.argv[1] if len(sys.argv) > 1 else str(Path(temporary) / "conversations.db"))
