"""Projects on the page: made, filled with conversations, and shared with members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.access.team import Team, team_of
from tests.web.conftest import OpenPage, looked_at
from tests.web.looking import ask
from tests.web.test_login import LOOKS, SCRIPT
from tests.web.test_team import enter

pytestmark = pytest.mark.browser


@pytest.fixture
def team(serve: Any) -> Iterator[Team]:
    with team_of(serve(SCRIPT, auth="login")) as team:
        yield team


def make(client: Any, name: str = "Sales", **about: Any) -> str:
    answer = client.post("/api/projects", json={"name": name, **about})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def labels_in(client: Any, project: str) -> list[str]:
    found = client.get("/api/conversations", params={"project": project}).json()["conversations"]
    return [each["label"] for each in found]


def test_a_server_without_login_has_projects_that_are_folders(serve: Any, open_page: OpenPage) -> None:
    running = serve(SCRIPT)
    page = open_page(running)
    page.get_by_role("link", name="Projects").click()
    page.get_by_role("heading", name="No projects yet").wait_for()
    page.get_by_label("Name of the project").fill("Rockets 火箭")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("heading", name="Rockets 火箭", level=1).wait_for()
    page.locator("nav").get_by_role("link", name="Rockets 火箭").wait_for()
    project = running.client.get("/api/projects").json()["projects"][0]["id"]
    page.locator("main").get_by_role("button", name="New conversation").click()
    page.locator("main").get_by_role("link", name="Project: Rockets 火箭").wait_for()
    ask(page, "How many rockets are there?")
    page.locator("main strong").wait_for()
    assert labels_in(running.client, project) == ["How many rockets are there?"]
    assert running.client.get("/api/conversations").json()["conversations"] == []
    page.locator("nav").get_by_role("link", name="Rockets 火箭").click()
    page.locator("main").get_by_role("link", name="How many rockets are there?").wait_for()
    page.get_by_role("button", name="Project settings").click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("heading", name="Members").count() == 0
    dialog.get_by_role("button", name="Delete the project").click()
    page.get_by_text("with its conversation and its memories").wait_for()
    page.get_by_role("button", name="Delete for good").click()
    page.get_by_role("heading", name="No projects yet").wait_for()
    assert running.client.get("/api/projects").json()["projects"] == []


def test_a_conversation_is_moved_into_a_project_and_out_of_it(serve: Any, open_page: OpenPage) -> None:
    running = serve(SCRIPT)
    project = make(running.client)
    running.answer("How many rockets are there?")
    page = open_page(running)
    page.get_by_role("button", name="More: How many rockets are there?").click()
    page.get_by_role("menuitem", name="Move to project").click()
    page.get_by_role("dialog").get_by_role("button", name="Sales").click()
    page.locator("nav li[data-id]").wait_for(state="detached")
    assert labels_in(running.client, project) == ["How many rockets are there?"]
    page.locator("nav").get_by_role("link", name="Sales").click()
    page.locator("main").get_by_role("link", name="How many rockets are there?").click()
    page.locator("main strong").wait_for()
    page.locator("main > header").get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Move to project").click()
    page.get_by_role("dialog").get_by_role("button", name="Out of the project").click()
    page.locator("nav li[data-id]").wait_for()
    assert labels_in(running.client, project) == []


def test_a_manager_sets_a_project_up_and_a_member_asks_in_it(team: Team, open_page: OpenPage) -> None:
    bob = team.join("Bob")
    project = make(team.admin)
    page = enter(team, open_page, f"/p/{project}")
    page.get_by_role("button", name="Project settings").click()
    dialog = page.get_by_role("dialog")
    save = dialog.get_by_role("button", name="Save")
    assert save.is_disabled()
    dialog.get_by_label("Name of the project").fill("Sales 2026")
    dialog.get_by_label("Instructions").fill("Amounts are in euros.")
    dialog.get_by_label("demo data").check()
    save.click()
    page.get_by_role("heading", name="Sales 2026", level=1).wait_for()
    kept = team.admin.get(f"/api/projects/{project}").json()
    assert (kept["name"], kept["instructions"], kept["sources"]) == ("Sales 2026", "Amounts are in euros.", ["demo"])
    page.get_by_role("button", name="Project settings").click()
    dialog.get_by_label("Name of a user").fill("nobody")
    dialog.get_by_role("button", name="Add").click()
    page.get_by_role("status").get_by_text("nobody").wait_for()
    dialog.get_by_label("Name of a user").fill("bob")
    dialog.get_by_role("button", name="Add").click()
    dialog.get_by_label("What Bob may do").wait_for()
    assert [each["name"] for each in bob.get("/api/projects").json()["projects"]] == ["Sales 2026"]

    his = enter(team, open_page, f"/p/{project}", "bob")
    his.locator("main").get_by_role("button", name="New conversation").click()
    ask(his, "How many rockets are there?")
    his.locator("main strong").wait_for()
    assert his.locator("main article").get_by_text("Bob", exact=True).count() == 0
    his.goto(f"{team.running.url}/p/{project}")
    his.get_by_role("button", name="Project settings").click()
    his.get_by_role("dialog").get_by_text("Amounts are in euros.").wait_for()
    assert his.get_by_role("button", name="Delete the project").count() == 0

    page.keyboard.press("Escape")
    page.locator("main").get_by_role("link", name="How many rockets are there?").click()
    page.locator("main article").get_by_text("Bob", exact=True).wait_for()
    page.goto(f"{team.running.url}/p/{project}")
    page.get_by_role("button", name="Project settings").click()
    dialog.get_by_label("What Bob may do").select_option("manage")
    his.reload()
    his.get_by_role("button", name="Project settings").click()
    his.get_by_role("dialog").get_by_role("button", name="Delete the project").wait_for()
    his.get_by_role("dialog").get_by_role("button", name="Leave the project").click()
    his.get_by_role("heading", name="No projects yet").wait_for()
    assert bob.get(f"/api/projects/{project}").status_code == 404


def test_who_is_no_member_sees_no_project(team: Team, open_page: OpenPage) -> None:
    team.join("Bob")
    project = make(team.admin)
    page = enter(team, open_page, "/projects", "bob")
    page.get_by_role("heading", name="No projects yet").wait_for()
    page.goto(f"{team.running.url}/p/{project}")
    page.get_by_role("alert").get_by_text("There is no project").wait_for()


@pytest.mark.parametrize(("width", "locale", "scheme"), LOOKS)
def test_each_screen_of_projects_can_be_used_by_everyone(
    team: Team, open_page: OpenPage, width: int, locale: str, scheme: str
) -> None:
    name = f"{width}-{locale[:2]}-{scheme}"
    bob = team.join("Bob", display="Bob, who has quite a long name for a person")
    project = make(team.admin, "销售 Sales, with quite a long name for a project", instructions="Amounts are in euros.")
    assert team.admin.put(f"/api/projects/{project}/members/bob").status_code == 204
    asked = bob.post("/api/chat", json={"question": "How many rockets are there?", "project": project}).json()
    assert bob.get(asked["events"]).status_code == 200
    page = enter(team, open_page, "/projects", width=width, locale=locale, color_scheme=scheme)
    page.locator("main").get_by_role("link", name="销售 Sales").wait_for()
    looked_at(page, f"projects-{name}")
    page.goto(f"{team.running.url}/p/{project}")
    page.locator("main li[data-id]").wait_for()
    looked_at(page, f"project-{name}")
    page.locator("main h1").locator("xpath=../..").get_by_role("button").last.click()
    page.get_by_role("dialog").get_by_text("Bob, who").wait_for()
    looked_at(page, f"project-settings-{name}")
    page.keyboard.press("Escape")
    page.goto(f"{team.running.url}/c/{asked['thread_id']}")
    page.locator("main article").get_by_text("Bob, who").wait_for()
    looked_at(page, f"project-conversation-{name}")
    page.goto(f"{team.running.url}/?project={project}")
    page.locator("main").get_by_role("link", name="销售 Sales").wait_for()
    looked_at(page, f"project-new-{name}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
