"""Run a deep agent (the package `deepagents`) whose messages, files and sub-agents are kept in the log.

    pip install deepagents && python examples/deep_agent.py

A scripted model stands for a real one: put `init_chat_model("anthropic:claude-sonnet-5")` in its place.
"""

import tempfile
from pathlib import Path

from deepagents import create_deep_agent

from longthread.langgraph import LongthreadSaver, LongthreadStore
from longthread.testing import ScriptedChatModel

RESEARCHER = {"name": "researcher", "description": "Finds facts.", "system_prompt": "You find facts."}


def answer(messages):
    """Have the researcher find a fact, and write it into a file."""
    if "You find facts." in str(messages[0].content):
        return {"finish": "The tower is 330 m high."}
    done = {message.name for message in messages if message.type == "tool"}
    if "task" not in done:
        return {"action": "task", "args": {"description": "How high is it?", "subagent_type": "researcher"}}
    if "write_file" not in done:
        return {"action": "write_file", "args": {"file_path": "/report.md", "content": messages[-1].text}}
    return {"finish": "The report is in /report.md."}


def main(folder: Path) -> None:
    with LongthreadSaver.from_conn_string(str(folder / "conversations.db")) as saver:
        agent = create_deep_agent(
            ScriptedChatModel(answer),
            subagents=[RESEARCHER],
            checkpointer=saver,
            store=LongthreadStore.of(saver),
        )
        thread = {"configurable": {"thread_id": "ada-1"}}
        agent.invoke({"messages": [("user", "Write a report on the tower.")]}, thread)

    with LongthreadSaver.from_conn_string(str(folder / "conversations.db")) as saver:  # as another process would
        agent = create_deep_agent(ScriptedChatModel(answer), subagents=[RESEARCHER], checkpointer=saver)
        state = agent.get_state(thread).values
        print([message.name for message in state["messages"] if message.type == "tool"])
        print(state["messages"][-1].text)
        print(state["files"]["/report.md"]["content"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
