"""What of a reply is told while it is written."""

from __future__ import annotations

import pytest

from longthread.llm.reply_text import LiveText, ends_unopened
from longthread.model.thinking import without_thinking

SIZES = [1, 3, 1000]


def told(reply: str, size: int, *, expects_thinking: bool = False) -> str:
    live = LiveText(expects_thinking=expects_thinking)
    text = ""
    for at in range(0, len(reply), size):
        piece, withdrawn = live.take(reply[at : at + size])
        text = piece if withdrawn else text + piece
    return text + live.rest()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "reply",
    [
        "There are 5 < 7 orders, and Ann [q1] leads.\n\n- one\n- Action\n",
        "<think>hm < 5</think>\n\nThere are 5.",
        "<think>a</think><thinking>b</thinking>There are 5.",
        "There are 5.\n<think>wait</think>No, 6.",
        "[THINK]a[/THINK]There are 5.",
        "◁think▷a◁/think▷共 5 个。",
        "The user asks.</think>\n\nThere are 5.",
        "用户在问。</think>共 5 个。",
        "Write `<think>` and ```</think>``` there.\n```xml\n<think>\n```\nDone.",
        "There are 5.\n<think>still",
    ],
)
def test_thinking_is_not_told_as_answer(reply: str, size: int) -> None:
    assert told(reply, size).strip() == without_thinking(reply).strip()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("reply", "before"),
    [
        ('{"thought": "why", "action": "list_tables"}', ""),
        ("```sql\nSELECT 1\n```", ""),
        ("SELECT 1", ""),
        ("Thought: hm\nAction: list_tables", ""),
        ("思考：看看\n行动：list_tables", ""),
        ("<|channel|>analysis<|message|>hm<|end|>", ""),
        ("analysisWe look.assistantfinalFive.", ""),
        ('I look.\n<tool_call>{"name": "list_tables"}</tool_call>', "I look."),
        ("I look.\nAction: list_tables\nAction Input: {}", "I look."),
        ("I look. [TOOL_CALLS]list_tables{}", "I look."),
        ("<think>hm</think><function=list_tables></function>", ""),
        ("<think>still", ""),
    ],
)
def test_calls_and_what_may_be_one_are_not_told(reply: str, before: str, size: int) -> None:
    assert told(reply, size).strip() == before


def test_a_model_that_never_opens_its_thinking_is_known_by_its_last_reply() -> None:
    reply = "The user asks.</think>There are 5."
    assert ends_unopened(reply) and not ends_unopened("<think>a</think>b") and not ends_unopened("There are 5.")
    live = LiveText(expects_thinking=True)
    assert [live.take(piece) for piece in ("The user ", "asks.</thi", "nk>There are 5 of ")] == [
        ("", False), ("", False), ("There are 5 of ", False)
    ]  # fmt: skip
