"""The list of conversations."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from tests.server.apps import define, define_clerk
from tests.web.conftest import looked_at

pytestmark = pytest.mark.browser

SCRIPT = [{"finish": "There are **41** rockets."}]
QUESTIONS = ("How many rockets?", "运载火箭有哪些？")


def names(page: Any) -> list[str]:
    texts: list[str] = page.locator("nav li[data-id] a").all_inner_texts()
    return [text.split("\n")[0] for text in texts]


def listed(page: Any, *expected: str) -> None:
    """Wait until the list has these, in this order."""
    page.wait_for_function(
        """(expected) => JSON.stringify([...document.querySelectorAll('nav li[data-id] a')]
            .map((each) => each.innerText.split('\\n')[0])) === JSON.stringify(expected)""",
        arg=list(expected),
    )


def choose(page: Any, name: str, item: str) -> None:
    page.get_by_role("button", name=f"More: {name}").click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def covered(page: Any, what: str) -> list[str]:
    """The elements that a message at the edge of the page covers."""
    page.wait_for_function("() => document.getAnimations().every((each) => each.playState !== 'running')")
    found: list[str] = page.evaluate(
        """(what) => {
            const said = [...document.querySelectorAll('[role=status]')]
                .filter((each) => each.innerText.includes('Deleted'))
            if (said.length !== 1) throw new Error(`${said.length} messages`)
            const top = said[0].getBoundingClientRect()
            const meets = (box) => box.height && box.top < top.bottom && box.bottom > top.top
                && box.left < top.right && box.right > top.left
            return [...document.querySelectorAll(what)].filter((each) => meets(each.getBoundingClientRect()))
                .map((each) => each.outerHTML.slice(0, 200))
        }""",
        what,
    )
    return found


def test_a_conversation_is_found_renamed_and_tagged(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    for question in QUESTIONS:
        running.answer(question)
    page = open_page(running)
    listed(page, *reversed(QUESTIONS))
    page.get_by_role("searchbox").fill("火箭")
    listed(page, QUESTIONS[1])
    page.locator("nav li[data-id] a").click()
    page.locator("main strong").wait_for()
    choose(page, QUESTIONS[1], "Rename")
    page.keyboard.insert_text("Rockets 火箭")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Rockets 火箭", level=1).wait_for()
    listed(page, "Rockets 火箭")
    choose(page, "Rockets 火箭", "Tags")
    page.get_by_label("New tag").fill("space")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Remove the tag space").wait_for()
    page.get_by_role("button", name="Done").click()
    [renamed] = [each for each in running.client.get("/api/conversations").json()["conversations"] if each["tags"]]
    assert (renamed["label"], renamed["tags"]) == ("Rockets 火箭", ["space"])
    page.get_by_role("searchbox").fill("no such words")
    page.get_by_text("Nothing found.").wait_for()


def test_the_header_renames_tags_archives_and_deletes(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    running.answer(QUESTIONS[0])
    page = open_page(running)
    page.locator("nav li[data-id] a").click()
    more = page.locator("header").get_by_role("button", name="More", exact=True)

    def do(item: str) -> None:
        more.click()
        page.get_by_role("menuitem", name=item, exact=True).click()

    do("Rename")
    page.keyboard.insert_text("Rockets 火箭")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Rockets 火箭", level=1).wait_for()
    listed(page, "Rockets 火箭")
    do("Rename")
    page.keyboard.insert_text("no")
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Rockets 火箭", level=1).wait_for()
    do("Tags")
    page.get_by_label("New tag").fill("space")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Remove the tag space").wait_for()
    page.get_by_role("button", name="Done").click()
    [there] = running.client.get("/api/conversations").json()["conversations"]
    assert (there["label"], there["tags"]) == ("Rockets 火箭", ["space"])
    do("Archive")
    listed(page)
    do("Rename")  # also what the list does not have
    page.keyboard.insert_text("Rockets 41")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Rockets 41", level=1).wait_for()
    do("Tags")
    page.get_by_role("button", name="Remove the tag space").click()
    page.get_by_text("No tags yet.").wait_for()
    page.get_by_role("button", name="Done").click()
    do("Take out of the archive")
    listed(page, "Rockets 41")
    do("Delete")
    listed(page)
    page.get_by_role("heading", name="New conversation", level=1).wait_for()
    assert running.client.get("/api/conversations").json()["conversations"] == []


def test_a_hit_opens_its_message_on_whichever_branch_it_is(serve: Any, open_page: Any) -> None:
    running = serve([{"finish": "There are **41** rockets [q1]."}])
    thread = running.answer("Where is the needle?")["thread_id"]
    for number in range(12):
        running.answer(f"And hay {number}?", thread_id=thread)
    asked = {each["content"]: each["id"] for each in running.history(thread)["messages"]}
    path = f"/api/conversations/{thread}/messages/{asked['And hay 5?']}/edit"
    edited = running.client.post(path, json={"question": "And straw?"}).json()
    assert running.client.get(edited["events"]).status_code == 200
    page = open_page(running)

    def find(text: str, words: str) -> None:
        page.get_by_role("searchbox").fill(text)
        page.locator("nav li[data-id] a[href*='at=']", has_text=words).click()  # what is found, not the list before

    def in_sight(text: str) -> None:
        page.wait_for_function(
            """(text) => [...document.querySelectorAll('main article')].some((each) => each.innerText.includes(text)
                && each.getBoundingClientRect().top > 0 && each.getBoundingClientRect().top < innerHeight - 100)""",
            arg=text,
        )

    def chosen() -> list[str]:
        return [each["content"] for each in running.history(thread)["messages"] if each["role"] == "user"]

    find("NEEDLE", "Where is the needle?")
    in_sight("Where is the needle?")
    aside = page.get_by_text("This is another version of the conversation, not the current one.")
    assert aside.count() == 0 and "?at=" in page.url
    find("rockets [q1]", "There are 41 rockets.")  # what is found is Markdown
    in_sight("And straw?")
    find("hay 11", "And hay 11?")
    aside.wait_for()
    in_sight("And hay 11?")
    assert page.locator("#question").count() == 0
    looked_at(page, "aside")
    page.get_by_role("button", name="Back to the conversation").click()
    page.locator("#question").wait_for()
    in_sight("And straw?")
    assert chosen()[-1] == "And straw?", "to look at a branch chooses nothing"
    page.go_back()
    in_sight("And hay 11?")
    page.get_by_role("button", name="Go on from here").click()
    page.locator("#question").wait_for()
    in_sight("And hay 11?")
    assert chosen()[-1] == "And hay 11?" and "?at=" not in page.url
    page.get_by_role("searchbox").fill("")
    choose(page, "Where is the needle?", "Archive")
    page.get_by_text("This conversation is archived.").wait_for()
    looked_at(page, "archived")
    page.get_by_role("button", name="Move back to the list").click()
    page.get_by_text("This conversation is archived.").wait_for(state="detached")
    listed(page, "Where is the needle?")


def test_a_deletion_is_undone_and_an_archive_holds_what_is_put_away(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    ids = [running.answer(question)["thread_id"] for question in QUESTIONS]
    page = open_page(running, f"/c/{ids[0]}", quiet=False)  # what is gone is asked for once more
    listed(page, *reversed(QUESTIONS))
    choose(page, QUESTIONS[0], "Delete")
    listed(page, QUESTIONS[1])
    page.get_by_role("heading", name="Ask your data.").wait_for()
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert covered(page, "form") == []
        page.keyboard.press("Control+k")
        page.get_by_role("dialog").get_by_role("option").first.wait_for()
        assert covered(page, "[role=dialog] :is(input, button, [role=option])") == []
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
    page.get_by_role("button", name="Undo").click()
    listed(page, *reversed(QUESTIONS))
    page.locator("main strong").wait_for()
    choose(page, QUESTIONS[1], "Archive")
    listed(page, QUESTIONS[0])
    page.get_by_role("button", name="Archive", exact=True).click()
    page.get_by_role("heading", name="Archive").wait_for()
    looked_at(page, "archive")
    listed(page, QUESTIONS[1])
    choose(page, QUESTIONS[1], "Take out of the archive")
    page.get_by_text("Nothing is archived.").wait_for()
    page.get_by_role("heading", name="Archive").wait_for()
    page.get_by_role("button", name="Back to the list").click()
    listed(page, *reversed(QUESTIONS))
    # On a phone the list lies over the page: what is said, and can be undone, lies over the list.
    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_role("button", name="Open the list of conversations").click()
    choose(page, QUESTIONS[1], "Delete")
    page.get_by_text("Deleted: ").wait_for()  # what was said before can be undone, too
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.get_by_role("button", name="Undo").last.click()
    assert len(running.client.get("/api/conversations").json()["conversations"]) == 2


def let_stay(page: Any) -> None:
    """What is said stays, however slow the machine is."""
    page.evaluate(
        """() => {
            const usual = window.setTimeout
            window.setTimeout = (work, ms, ...more) => usual(work, ms > 4000 ? 100 * ms : ms, ...more)
        }"""
    )


def undo(page: Any, what: str) -> Any:
    """The button of the message about a conversation."""
    return page.locator("[role=status] > div", has_text=f"Deleted: {what}").get_by_role("button", name="Undo")


def test_each_undo_restores_what_its_own_message_deleted(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    asked = [f"Question {number}?" for number in range(5)]
    ids = {question: running.answer(question)["thread_id"] for question in asked}
    page = open_page(running)
    let_stay(page)
    listed(page, *reversed(asked))
    for question in asked:
        choose(page, question, "Delete")
        undo(page, question).wait_for()
    listed(page)
    assert page.get_by_role("button", name="Undo").count() == 5, "each can be undone"
    box = undo(page, asked[1]).bounding_box()
    page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.get_by_text(f"Restored: {asked[1]}").wait_for()
    listed(page, asked[1])
    undo(page, asked[3]).click()
    listed(page, asked[3], asked[1])
    assert [undo(page, each).count() for each in asked] == [1, 0, 1, 0, 1]
    for question in asked:
        restored = running.client.post(f"/api/conversations/{ids[question]}/restore").status_code
        assert restored == (404 if question in (asked[1], asked[3]) else 200), question


def test_an_undo_that_fails_can_be_tried_again_and_leaves_the_page_where_it_is(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    ids = [running.answer(question)["thread_id"] for question in QUESTIONS]
    page = open_page(running, f"/c/{ids[0]}", quiet=False)
    let_stay(page)
    listed(page, *reversed(QUESTIONS))
    choose(page, QUESTIONS[0], "Archive")
    page.get_by_text(f"Archived: {QUESTIONS[0]}").wait_for()
    page.locator("header").get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Delete", exact=True).click()
    undo(page, QUESTIONS[0]).wait_for()
    assert page.get_by_text("Archived: ").count() == 0, "that cannot be undone any more"
    page.locator("nav li[data-id] a").click()
    page.locator("main strong").wait_for()
    page.route("**/restore", lambda route: route.abort())
    undo(page, QUESTIONS[0]).click()
    page.locator("[data-kind=bad]").wait_for()
    page.unroute("**/restore")
    undo(page, QUESTIONS[0]).click()
    page.get_by_text(f"Restored: {QUESTIONS[0]}").wait_for()
    assert page.url.endswith(f"/c/{ids[1]}")


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
@pytest.mark.parametrize("choice", ["keep", "delete"])
def test_deleting_asks_what_becomes_of_what_was_remembered(
    serve: Any, open_page: Any, locale: str, choice: str
) -> None:
    words = {
        "en": ("Delete", "More: ", ("Keep what was remembered", "Forget what was remembered, too")),
        "zh-CN": ("删除", "更多：", ("保留记住的内容", "同时忘记这些内容")),
    }
    delete, more, choices = words[locale]
    running = serve([{"action": "remember", "args": {"content": "Ann likes rockets."}}, *SCRIPT])
    running.answer(QUESTIONS[0])
    page = open_page(running, locale=locale)
    page.get_by_role("button", name=f"{more}{QUESTIONS[0]}").click()
    page.get_by_role("menuitem", name=delete, exact=True).click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("radio", name=choices[0]).is_checked(), "nothing is lost unless it is chosen"
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        looked_at(page, f"delete-{locale}-{width}")
    dialog.get_by_role("radio", name=choices[choice == "delete"]).check()
    with page.expect_response(lambda answer: answer.request.method == "DELETE") as told:
        dialog.get_by_role("button", name=delete, exact=True).click()
    assert f"memories={choice}" in told.value.url
    dialog.wait_for(state="detached")
    listed(page)


def test_what_others_do_is_seen_without_a_reload(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running)
    page.get_by_text("No conversations yet.").wait_for()
    running.model.shut.set()
    first = running.ask(QUESTIONS[0])
    page.get_by_role("link", name=f"{QUESTIONS[0]} Answering").wait_for()
    running.model.shut.clear()
    running.answer(QUESTIONS[1])
    listed(page, *reversed(QUESTIONS))
    page.get_by_role("link", name=f"{QUESTIONS[0]} Answering").wait_for(state="detached")
    assert running.client.delete(f"/api/conversations/{first['thread_id']}").status_code == 204
    listed(page, QUESTIONS[1])


def test_a_damaged_conversation_is_named_and_can_be_deleted(serve: Any, open_page: Any, store_address: str) -> None:
    running = serve(SCRIPT)
    ids = [running.answer(question)["thread_id"] for question in QUESTIONS]
    with closing(sqlite3.connect(store_address)) as store, store:
        assert store.execute("UPDATE threads SET created_at = 'zzz' WHERE id = ?", ids[:1]).rowcount == 1
    page = open_page(running)
    page.locator(f"nav li[data-id='{ids[0]}']", has_text="Damaged: it cannot be read").wait_for()
    page.get_by_role("button", name=f"Delete: {ids[0]}").click()
    page.get_by_role("button", name=f"Delete: {ids[0]}").wait_for(state="detached")
    assert names(page) == [QUESTIONS[1]]
    assert running.client.get("/api/conversations").json()["damaged"] == []


def test_what_waits_for_approval_is_marked(serve: Any, open_page: Any, store_address: str) -> None:
    define_clerk(store_address)
    calls = [{"thought": "", "action": "send_mail", "args": {"to": "ada"}}]
    running = serve([calls, {"finish": "She was **told**."}])
    thread = running.answer("Write to her.", agent="clerk")["thread_id"]
    page = open_page(running)
    page.get_by_role("link", name="Write to her. Waits for approval clerk").wait_for()
    path = f"/api/conversations/{thread}/approvals"
    [call] = [each["id"] for each in running.client.get(path).json()["pending"]]
    assert running.client.post(path, json={"decisions": {call: {"type": "approve"}}}).status_code == 202
    page.get_by_text("Waits for approval").wait_for(state="detached")


def test_a_new_conversation_is_with_the_agent_that_was_chosen(serve: Any, open_page: Any, store_address: str) -> None:
    pilot = {
        "kind": "agent",
        "name": "航天员",
        "description": "只问航天。",
        "system_prompt": "You ask.",
        "skills": ["data"],
        "config": {"source": "航天"},
    }
    define(store_address, {"kind": "source", "name": "航天", "address": "demo"}, pilot)
    running = serve(SCRIPT)
    page = open_page(running, locale="zh-CN")
    page.get_by_role("button", name="智能体: 数据分析师").click()
    page.get_by_role("menuitemradio", name="通用助手").click()
    page.locator("main p", has_text="什么都可以问，还能记住你告诉它的事。").wait_for()
    assert page.get_by_role("button", name="数据源").count() == 0
    page.get_by_role("button", name="智能体: 通用助手").click()
    page.get_by_role("menuitemradio", name="航天员").click()
    page.locator("main p", has_text="只问航天。").wait_for()
    page.fill("#question", "你好")
    page.press("#question", "Enter")
    page.locator("main strong").wait_for()
    [thread] = running.client.get("/api/conversations").json()["conversations"]
    assert running.history(thread["id"])["agent"]["name"] == "航天员"
