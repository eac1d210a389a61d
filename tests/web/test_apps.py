"""«Use from your app»: the code on the page works as it is pasted, and says where it writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.server.apps import define
from tests.server.test_agui import applied, assistant, user
from tests.server.test_chat import frames
from tests.web.conftest import looked_at
from tests.web.looking import opened_apps

from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.browser

THREAD = "ada's 火箭"
"""A name that shells, headers and addresses each write in their own way."""
ANSWER = "There are **41** rockets."
SCRIPT = [{"finish": ANSWER}]
ASKED = "How many are there?"


def run(*command: str, **variables: str) -> str:
    """What a program prints. It finds `longthread`."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command, env={**os.environ, "PATH": path, **variables}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(running: Any, thread: str = THREAD) -> list[str]:
    return [each["content"] for each in running.history(thread)["messages"]]


def opened(open_page: Any, running: Any, **options: Any) -> Any:
    running.answer("First?", thread_id=THREAD)
    return open_page(running, "/c/ada's%20%E7%81%AB%E7%AE%AD", **options)


def test_what_is_sent_to_the_server_works_as_it_is_pasted(serve: Any, open_page: Any, store_address: str) -> None:
    with ProviderEmulator(None) as provider:
        upstream = {"kind": "upstream", "name": "emulated", "base_url": provider.base_url, "dialects": ["completions"]}
        define(store_address, upstream)
        running = serve(SCRIPT)
        page = opened(open_page, running)
        ways = opened_apps(page)

        [shell] = ways["curl"]
        assert "RUN_FINISHED" in run("bash", "-c", shell)
        assert said(running) == ["First?", ANSWER, ASKED, ANSWER]

        [program] = ways["agui"]
        over_http(running, program)
        before = said(running)
        assert before == ["First?", ANSWER, ASKED, ANSWER, ASKED, ANSWER]

        [shell] = ways["gateway"]
        assert f"You said: {ASKED}" in run("bash", "-c", shell, OPENAI_API_KEY="not a key")
        assert said(running) == [ASKED, f"You said: {ASKED}"]
        page.keyboard.press("Escape")
        versions = page.get_by_role("group", name="Versions of the question")
        with page.expect_response(lambda answer: answer.request.method != "GET"):  # the choice is stored
            versions.get_by_role("button", name="Previous").click()
        page.get_by_role("heading", name="First?").wait_for()
        assert said(running) == before


@pytest.mark.slow
def test_programs_that_open_the_store_work_as_they_are_pasted(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    ways = opened_apps(opened(open_page, running))
    asked = json.loads(run(sys.executable, str(Path(__file__).with_name("asking_mcp.py")), *ways["mcp"]))
    assert not asked["failed"], asked
    before = said(running)
    assert before == ["First?", ANSWER, ASKED, asked["said"]["answer"]]
    [program] = ways["langgraph"]
    assert run(sys.executable, "-c", program) == "You said 1 things.\n"
    assert (said(running), said(running, f"{THREAD}-langgraph")) == (before, [ASKED, "You said 1 things."])
    page = open_page(running, "/c/ada's%20%E7%81%AB%E7%AE%AD-langgraph")
    [program] = opened_apps(page)["langgraph"]
    assert run(sys.executable, "-c", program) == "You said 3 things.\n", "an application goes on in its own thread"


def over_http(running: Any, program: str) -> None:
    """Sends what AG-UI's client sends. `make test-clients` runs the program with that client."""
    [agent] = re.findall(r'url: "([^"]+)"', program)
    [history] = re.findall(r'fetch\("([^"]+)"\)', program)
    [thread] = re.findall(r'threadId: ("[^"]+")', program)
    [question] = re.findall(r'content: ("[^"]+")', program)
    body = {"threadId": json.loads(thread), "runId": running.client.get(history).json()["run"]["id"], "messages": []}
    events = [event for _, event in frames(running.client.post(agent, json=body).text)]
    [messages] = [event["messages"] for event in events if event["type"] == "MESSAGES_SNAPSHOT"][-1:]
    known = {each["id"] for each in messages}
    answers = [assistant(text, id_) for id_, text in applied(events).items() if id_ not in known]
    asked = user(json.loads(question), "asked")
    answer = running.client.post(agent, json={**body, "runId": "asks", "messages": [*messages, *answers, asked]})
    assert "RUN_FINISHED" in answer.text


@pytest.mark.parametrize(("width", "locale", "scheme"), [(1280, "en", "light"), (390, "zh-CN", "dark")])
def test_everyone_can_read_it(serve: Any, open_page: Any, width: int, locale: str, scheme: str) -> None:
    running = serve(SCRIPT)
    page = opened(open_page, running, width=width, locale=locale, color_scheme=scheme)
    page.locator("main strong").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("your app" if locale == "en" else "你的应用")
    page.keyboard.press("Enter")
    for way in ("curl", "mcp", "langgraph"):
        page.locator("[role=tab]", has_text=re.compile(way, re.IGNORECASE)).click()
        page.locator(f"[data-way={way}] pre").first.wait_for()
        looked_at(page, f"apps-{way}-{width}-{locale[:2]}-{scheme}")
