"""Pins, tags and titles: how conversations are kept in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from longthread.model.thread import columns, read_title, title_without_model

pytestmark = pytest.mark.one_backend

LONG = "How many rockets were launched in each year since 1990, and by whom?"
LONG_ZH = "从一九九零年到现在，每一年分别发射了多少枚运载火箭？"


def listed(running: Any, **asked: Any) -> list[str]:
    found = running.client.get("/api/conversations", params=asked).json()["conversations"]
    return [item["label"] for item in found]


def label(running: Any, thread: str) -> str:
    [found] = [
        each for each in running.client.get("/api/conversations").json()["conversations"] if each["id"] == thread
    ]
    return str(found["label"])


def until(happens: Callable[[], bool]) -> None:
    """Wait for what goes on in the background."""
    for _ in range(200):
        if happens():
            return
        time.sleep(0.02)
    raise AssertionError("it never happened")


def becomes(running: Any, thread: str, title: str) -> None:
    """Wait until a conversation has a title: it is given behind the answer."""
    until(lambda: label(running, thread) == title)


def titling(titles: Sequence[str | Exception], asked: list[str], answered: list[str]) -> Any:
    """A model that answers each question, and gives titles in this order; `asked` has what it was shown for them, and
    `answered` what it was shown for answers."""
    left = list(titles)

    def reply(messages: Any) -> Any:
        if "a title for a list" not in str(messages[0].content):
            answered.append(str(messages[-1].content))
            return {"finish": "There are **41** rockets."}
        asked.append(str(messages[-1].content))
        title = left.pop(0)
        if isinstance(title, Exception):
            raise title
        return title

    return reply


def test_pins_and_tags_list_their_conversations(serve: Any) -> None:
    running = serve([{"finish": "Yes."}])
    ids = [running.answer(f"Question {number}")["thread_id"] for number in range(3)]
    paths = [f"/api/conversations/{each}" for each in ids]
    pinned = running.client.patch(paths[0], json={"pinned": True}).json()
    assert pinned["pinned_at"] and pinned["metadata"] == {}
    assert running.history(ids[0])["pinned_at"] == pinned["pinned_at"]
    running.client.patch(paths[0], json={"tags": ["航天"]})
    running.client.patch(paths[1], json={"tags": ["weekly", "航天"]})
    assert listed(running, pinned=True) == ["Question 0"]
    assert listed(running) == ["Question 2", "Question 1", "Question 0"], "in their order: the page puts pins first"
    assert listed(running, tag="航天") == ["Question 1", "Question 0"]
    assert listed(running, tag="weekly") == listed(running, q="WEEK") == ["Question 1"]
    assert listed(running, tag="week") == listed(running, q="航天", tag="none") == []
    tags = [{"tag": "航天", "conversations": 2}, {"tag": "weekly", "conversations": 1}]
    assert running.client.get("/api/tags").json() == {"tags": tags}
    assert running.client.patch(paths[0], json={"pinned": False}).json()["pinned_at"] is None
    refused = running.client.patch(paths[0], json={"metadata": {"longthread.titled": "mine"}})
    assert (refused.status_code, "Choose another name" in refused.text) == (422, True)


@pytest.mark.parametrize(
    ("question", "title"), [(LONG, "Launches by year and agency"), (LONG_ZH, "历年运载火箭发射")], ids=["en", "zh"]
)
def test_a_model_gives_a_title_that_follows_the_question_until_a_person_does(
    serve: Any, question: str, title: str
) -> None:
    asked: list[str] = []
    answered: list[str] = []
    running = serve(
        titling([f"Title: “{title}”.", "Second title", "Never given"], asked, answered),
        titles=True,
        model="test:scripted",
    )
    thread = running.answer(question)["thread_id"]
    becomes(running, thread, title)
    assert question in asked[0] and "41" in asked[0]
    calls = running.client.get(f"/api/conversations/{thread}/calls").json()["calls"]
    assert len(calls) == len(answered), "no call of the conversation's, and no part of its log"
    assert [each["content"] for each in running.history(thread)["messages"]] == [question, "There are **41** rockets."]
    running.answer("And which of them were the most expensive ones?", thread_id=thread)
    first = running.history(thread)["messages"][0]["id"]
    edit = f"/api/conversations/{thread}/messages/{first}/edit"
    edited = running.client.post(edit, json={"question": f"{question} Please!"}).json()
    assert label(running, thread) != title, "at once, with the new question"
    assert running.client.get(edited["events"]).status_code == 200
    becomes(running, thread, "Second title")
    assert len(asked) == 2, "once for each first question"
    running.client.patch(f"/api/conversations/{thread}", json={"label": "Mine"})
    first = running.history(thread)["messages"][0]["id"]
    edited = running.client.post(
        f"/api/conversations/{thread}/messages/{first}/edit", json={"question": f"{question} Now!"}
    ).json()
    assert running.client.get(edited["events"]).status_code == 200
    running.stop()
    assert len(asked) == 2, "a person's title stays"


@pytest.mark.parametrize("reply", ["SELECT count(*) FROM launches", "", "x " * 200, ValueError("down")], ids=repr)
def test_what_is_no_title_leaves_the_question(serve: Any, reply: str | Exception) -> None:
    asked: list[str] = []
    running = serve(titling([reply], asked, []), titles=True, model="test:scripted")
    thread = running.answer(LONG)["thread_id"]
    until(lambda: bool(asked))
    assert label(running, thread) == LONG[:50]
    running.answer("Again?", thread_id=thread)
    running.stop()
    assert len(asked) == 1


def test_the_demo_model_leaves_out_the_words_that_only_ask(serve: Any) -> None:
    running = serve(None, titles=True)
    thread = running.answer("What are the top 5 rockets by number of launches?")["thread_id"]
    becomes(running, thread, "Top 5 rockets by number of launches")
    short = running.answer("How many rockets?")["thread_id"]
    running.answer("And how many of these are active today?", thread_id=short)
    assert label(running, short) == "How many rockets?", "short enough"


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("How many launches were there per year?", "Launches per year"),
        ("Could you please show me the revenue by city?", "Revenue by city"),
        ("请问每年发射的次数是多少？", "每年发射的次数"),
        ("帮我统计一下各城市的订单数", "各城市的订单数"),
        ("有哪些？", "有哪些"),
        ("How many?", "How many"),
        (
            "How many rockets were lost, and which of them had a crew?",
            "How many rockets were lost, and which of them had a crew",
        ),
        ("word " * 40, "Word word word word word word word word word word word…"),
    ],
)
def test_a_question_becomes_a_title(question: str, title: str) -> None:
    assert title_without_model(question) == title


@pytest.mark.parametrize(
    ("reply", "title"),
    [
        ("<think>\nA title…\n</think>\n\n**Launches by year**", "Launches by year"),
        ("# 标题：《历年发射》\n\n说明", "历年发射"),
        ("```sql\nSELECT 1\n```", None),
        ('{"action": "run_sql"}', None),
        ("<think>never ends", None),
        ("…", None),
    ],
)
def test_a_reply_is_read_as_a_title(reply: str, title: str | None) -> None:
    assert read_title(reply) == title


def test_a_title_has_room_in_the_list() -> None:
    assert columns(str(read_title("火" * 50))) <= 60
