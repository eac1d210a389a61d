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
    said = markdown(THREAD, entries, details=True).split("\n\n")
    assert said[:3] == ["# Weather", "## 上海天气怎么样？", "> 让我查一下。\n>\n> 请稍等。"]
    assert said[3:] == ["*weather*", '`{"city": "上海"}`', "晴。\n"]
    assert markdown(THREAD, entries) == "# Weather\n\n## 上海天气怎么样？\n\n晴。\n", "to read, no more"


def test_labels_of_queries_are_left_out_but_not_in_code() -> None:
    answer = "共 **41** 枚 [q1, q2]，见 [q3](https://example.org)。\n\n```python\nx [q1]\n```\n\n`a [q1]` [q4]"
    shown = markdown(THREAD, [Entry("1", "assistant", answer)])
    assert shown == (
        "# Weather\n\n共 **41** 枚，见 [q3](https://example.org)。\n\n```python\nx [q1]\n```\n\n`a [q1]`\n"
    )
    assert answer in markdown(THREAD, [Entry("1", "assistant", answer)], details=True)


def test_a_call_without_words_leaves_no_empty_lines() -> None:
    call = ToolCall("c", "run_sql", {"sql": "SELECT 1"})
    shown = markdown(THREAD, [Entry("1", "assistant", "\n", tool_calls=(call,))], details=True)
    assert shown == "# Weather\n\n*run_sql*\n\n```sql\nSELECT 1\n```\n"
