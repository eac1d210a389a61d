"""A conversation as Markdown."""

from __future__ import annotations

from datetime import UTC, datetime

from longthread.model.entry import Entry, ToolCall
from longthread.model.markdown import markdown
from longthread.model.thread import Thread

AT = datetime(2026, 1, 1, tzinfo=UTC)
THREAD = Thread("t", "default", "Weather", None, AT, AT)


def test_what_is_said_beside_a_call_stands_before_it() -> None:
    call = ToolCall("c", "weather", {"city": "上海"})
    entries = [
        Entry("1", "user", "上海天气怎么样？"),
        Entry("2", "assistant", "让我查一下。\n\n请稍等。", tool_calls=(call,)),
        Entry("3", "tool", "Sunny", tool_call_id="c"),
        Entry("4", "assistant", "晴。"),
    ]
    said = markdown(THREAD, entries).split("\n\n")
    assert said[:3] == ["# Weather", "## 上海天气怎么样？", "> 让我查一下。\n>\n> 请稍等。"]
    assert said[3:] == ["*weather*", '`{"city": "上海"}`', "晴。\n"]


def test_a_call_without_words_leaves_no_empty_lines() -> None:
    call = ToolCall("c", "run_sql", {"sql": "SELECT 1"})
    shown = markdown(THREAD, [Entry("1", "assistant", "\n", tool_calls=(call,))])
    assert shown == "# Weather\n\n*run_sql*\n\n```sql\nSELECT 1\n```\n"
