"""Give a LangChain agent a checkpointer, views that fit its window, recall, and memories of its user.

    python examples/langgraph_agent.py

Scripted models stand for real ones: put `init_chat_model("openai:gpt-5")` in their place.
"""

import json
import tempfile
from pathlib import Path

from langchain.agents import create_agent

from longthread.langgraph import LongthreadSaver, MemoryExtractor, MemoryMiddleware, recall_tool
from longthread.testing import ScriptedChatModel

FACT = {"content": "Ada lives in Lyon.", "type": "semantic", "messages": [1]}


def answer(messages):
    """Look up what is not in sight any more."""
    if messages[-1].type == "tool":
        return {"finish": "It is 4711." if "4711" in str(messages[-1].content) else "I do not know."}
    if "customer number?" in str(messages[-1].content):
        return {"action": "recall_memory", "args": {"query": "customer number"}}
    return {"finish": f"I see {len(messages)} messages."}


def find_facts(messages):
    """Take from a conversation what will matter later."""
    return json.dumps({"memories": [FACT] if "I live in Lyon" in str(messages[-1].content) else []})


def main(folder: Path) -> None:
    with LongthreadSaver.from_conn_string(str(folder / "conversations.db"), user_id="ada") as saver:
        extractor = MemoryExtractor(ScriptedChatModel(find_facts), saver)
        memory = MemoryMiddleware(
            saver, context_window=4_000, max_messages_per_thread=20, extractor=extractor, enable_summary=False
        )
        agent = create_agent(ScriptedChatModel(answer), [recall_tool(saver)], checkpointer=saver, middleware=[memory])
        thread = {"configurable": {"thread_id": "ada-1"}}

        def say(text: str) -> str:
            return agent.invoke({"messages": [("user", text)]}, thread)["messages"][-1].text

        say("I live in Lyon, and my customer number is 4711.")
        for n in range(30):
            seen = say(f"Order {n} arrived late. " + "It was a long story. " * 15)
        print(f"After 31 questions: {seen}")
        memory.settle()  # the background work, for which no turn waits
        print(f"What was my customer number? {say('What was my customer number?')}")
        extractor.extract("ada-1")  # now, and not after the usual quiet minute
        print(f"Memories: {[each.content for each in extractor.search('where does Ada live')]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
