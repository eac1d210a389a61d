"""Move a LangGraph application's threads from SqliteSaver to Longthread, and back.

    pip install -e '.[import]' && python examples/langgraph_move.py

`longthread import checkpoints.sqlite` and `longthread export langgraph --to sqlite:///checkpoints.sqlite` do the same.
"""

import asyncio
import tempfile
from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from longthread.langgraph import LongthreadSaver, export_langgraph, import_langgraph

BUILDER = StateGraph(MessagesState)
BUILDER.add_node("count", lambda state: {"messages": [("ai", f"You said {len(state['messages'])} things.")]})
BUILDER.add_edge(START, "count")
THREAD = {"configurable": {"thread_id": "ada-1"}}


async def say(text: str, saver) -> None:
    graph = BUILDER.compile(checkpointer=saver)
    state = await graph.ainvoke({"messages": [("user", text)]}, THREAD)
    print(f"{type(saver).__name__}: {state['messages'][-1].text}")


async def main(folder: Path) -> None:
    before, ours, after = (str(folder / name) for name in ("before.sqlite", "conversations.db", "after.sqlite"))
    async with AsyncSqliteSaver.from_conn_string(before) as saver:
        await say("Hello", saver)
        await say("And again", saver)

    async with LongthreadSaver.from_conn_string(ours) as saver:
        await import_langgraph(before, saver)
        await say("Here I am", saver)
        history = [each async for each in BUILDER.compile(checkpointer=saver).aget_state_history(THREAD)]
        print(f"{len(history)} checkpoints; a message is stored once")
        await export_langgraph(f"sqlite:///{after}", saver)

    async with AsyncSqliteSaver.from_conn_string(after) as saver:
        await say("And back", saver)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))
