"""Thinking that a server leaves in the text of a reply."""

from __future__ import annotations

import pytest

from longthread.model.thinking import split_thinking, without_thinking

HELLO = "Hello there."


@pytest.mark.parametrize(
    ("reply", "thinking"),
    [
        ("The user greets me.</think>\n\nHello there.", "The user greets me."),
        ("<think>a</think>\n<think>b</think>\nHello there.", "a\n\nb"),
        ("<THINK>x</THINK>Hello there.", "x"),
        ("<thinking>a</thinking>\n\nHello there.", "a"),
        ("<thought>a</thought>Hello there.", "a"),
        ("<reasoning>a</reasoning>Hello there.", "a"),
        ("<reflection>a</reflection>\nHello there.", "a"),
        ("<seed:think>a</seed:think>Hello there.", "a"),
        ("[THINK]a[/THINK]Hello there.", "a"),
        ("◁think▷a◁/think▷Hello there.", "a"),
        ("<|begin_of_thought|>a<|end_of_thought|><|begin_of_solution|>Hello there.<|end_of_solution|>", "a"),
        ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>Hello there.<|END_RESPONSE|>", "a"),
        ("<|channel>thought\na<channel|>Hello there.", "a"),
        ("<unused94>thought\na<unused95>Hello there.", "a"),
        ("<think>a</think><answer>Hello there.</answer>", "a"),
        ("<thinking>a<reflection>b</reflection>c</thinking><output>Hello there.</output>", "a<reflection>b\n\nc"),
        ("Hello there.\n<think>wait", "wait"),
        ("<think>a</think>Hello there.<think>b", "a\n\nb"),
        ("a</think>b</thinking>Hello there.", "a\n\nb"),
        (
            "<think>Is it `</think>`, or\n```sql\nSELECT 1\n</think>Hello there.",
            "Is it `</think>`, or\n```sql\nSELECT 1",
        ),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Hello there.", "a"),
        ("analysisWe greet.<|end|><|start|>assistantfinalHello there.", "We greet."),
        ("analysisWe greet.assistantfinalHello there.", "We greet."),
        ("Here is my thought process: a\nHere is my response: Hello there.", "a"),
        ("<think>\n\n</think>\n\nHello there.", ""),
        ("Hello there.<|im_end|>", ""),
        ("Hello there.</s>", ""),
    ],
)
def test_thinking_is_apart_from_the_answer(reply: str, thinking: str) -> None:
    found, rest = split_thinking(reply)
    assert (found, rest.strip()) == (thinking, HELLO)
    assert without_thinking(reply).strip() == HELLO


def test_thinking_in_chinese_without_its_first_tag() -> None:
    assert split_thinking("用户在打招呼。</think>\n你好。") == ("用户在打招呼。", "\n你好。")


@pytest.mark.parametrize(
    "reply",
    [
        "Use `<think>` and `</think>` around it.",
        'The tag "</think>" ends it, and "<think>" begins it.',
        "标签“<think>”表示思考，“</think>”结束思考。",
        "Write '</think>' at the end.",
        "An example:\n```xml\n<think>a</think>\n```\nThat is all.",
        "```\n</think>\n```\nis the end, and\n```xml\n<think>\n```\nthe beginning.",
        "The <think> tag opens it.",
        "A thoughtful <thinker> thinks.",
        "Analysis of sales: they rose.",
    ],
)
def test_what_only_tells_of_a_tag_is_not_cut(reply: str) -> None:
    assert split_thinking(reply) == ("", reply)


def test_thinking_without_an_end_is_no_answer() -> None:
    assert split_thinking("<think>still") == ("still", "")
    assert split_thinking("<|channel|>analysis<|message|>still") == ("still", "")
