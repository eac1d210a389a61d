"""The account of a user, and the pages of administrators."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.server.access.team import OTHER, PASSWORD, Team, team_of
from tests.web.conftest import OpenPage, looked_at
from tests.web.test_login import LOOKS, SCRIPT, log_in

from longthread.access.spending import SpentCall, note_spending
from longthread.model.run import RunAsker
from longthread.settings import Settings
from longthread.store.open import open_store

pytestmark = pytest.mark.browser


@pytest.fixture
def team(serve: Any) -> Iterator[Team]:
    with team_of(serve(SCRIPT, auth="login")) as team:
        yield team


def enter(team: Team, open_page: OpenPage, path: str, name: str = "ada", **options: Any) -> Any:
    """Open a page of a user who has logged in."""
    page = open_page(team.running, "/login", **{"quiet": False, **options})
    page.evaluate(
        """async (body) => fetch('/api/login', {
            method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)})""",
        {"name": name, "password": PASSWORD},
    )
    page.goto(team.running.url + path)
    page.locator("main h2, main h1, #question").first.wait_for()
    return page


def spend(store_address: str, user_id: str) -> None:
    """Note two calls of a user. Playwright's loop runs in this thread, so another one writes."""

    async def write() -> None:
        settings = Settings.of(prices={"gpt": {"input": 1_000_000, "output": 0}})
        async with open_store(store_address) as store, store.writing() as tx:
            for model in ("gpt", "unpriced"):
                await note_spending(tx, RunAsker(user_id), SpentCall((model,), tokens_in=2, tokens_out=1), settings)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, write()).result()


def test_a_user_logs_out_and_leaves_nothing_in_the_browser(team: Team, open_page: OpenPage) -> None:
    team.join("Bob", display="Bob B.")
    page = enter(team, open_page, "/", "bob")
    page.fill("#question", "My private draft")
    page.get_by_role("button", name="Bob B.").click()
    page.get_by_role("menuitem", name="Log out").click()
    page.wait_for_url("**/login")
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.includes('draft'))") == []
    assert page.request.get(f"{team.running.url}/api/me").status == 401
    log_in(page, "bob")
    page.wait_for_selector("#question")
    assert page.locator("#question").input_value() == ""


def test_another_user_of_the_browser_sees_nothing_of_the_one_before(team: Team, open_page: OpenPage) -> None:
    bob = team.join("Bob")
    page = enter(team, open_page, "/", "bob")
    page.fill("#question", "My private draft")
    team.admin.post(f"/api/admin/users/{bob.get('/api/me').json()['id']}/logout")
    page.wait_for_url("**/login", timeout=20_000)
    log_in(page, "ada")
    page.wait_for_selector("#question")
    assert page.locator("#question").input_value() == ""


def test_a_user_changes_name_and_password_and_ends_other_logins(team: Team, open_page: OpenPage) -> None:
    other = team.join("Bob")
    page = enter(team, open_page, "/settings/account", "bob")
    page.get_by_label("Display name").fill("Robert")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Robert").wait_for()
    page.get_by_label("Current password").fill(OTHER)
    page.get_by_label("New password").fill(OTHER)
    page.get_by_role("button", name="Change the password").click()
    page.get_by_text("This is not your current password.").wait_for()
    page.get_by_text("this one").wait_for()
    assert page.get_by_role("button", name="End the login").count() == 1
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_role("button", name="Change the password").click()
    page.get_by_text("The password is set.").wait_for()
    assert other.get("/api/me").status_code == 401
    page.get_by_role("button", name="End the login").wait_for(state="detached")
    page.get_by_role("button", name="Log out everywhere").click()
    page.wait_for_url("**/login")


def test_an_administrator_adds_changes_and_shuts_out_a_user(team: Team, open_page: OpenPage) -> None:
    assert team.admin.post("/api/admin/groups", json={"name": "finance"}).status_code == 201
    page = enter(team, open_page, "/settings/users")
    page.get_by_label("Name", exact=True).fill("Bob")
    page.get_by_label("Role", exact=True).select_option("builder")
    page.get_by_label("finance").check()
    page.get_by_role("button", name="Add, and make the link").click()
    link = page.get_by_label("The link for Bob").input_value()
    assert link.startswith(f"{team.running.url}/login#")
    row = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Bob"))
    row.get_by_text("Builder · finance · not here yet").wait_for()
    bob = team.visitor()
    token = link.partition("#")[2]
    assert bob.post("/api/links", json={"token": token, "password": PASSWORD}).status_code == 200
    page.reload()
    row.get_by_role("button", name="More: Bob").click()
    page.get_by_role("menuitemradio", name="Member").click()
    row.get_by_text("Member · finance").wait_for()
    row.get_by_role("button", name="More: Bob").click()
    page.get_by_role("menuitem", name="Link for a new password").click()
    assert "/login#" in page.get_by_role("dialog").get_by_label("The link for Bob").input_value()
    page.get_by_role("button", name="Done").click()
    row.get_by_role("button", name="More: Bob").click()
    page.get_by_role("menuitem", name="Disable").click()
    row.get_by_text("disabled").wait_for()
    assert bob.get("/api/me").status_code == 401
    own = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="ada"))
    own.get_by_role("button", name="More: ada").click()
    page.get_by_role("menuitem", name="Log out everywhere").wait_for()
    assert page.get_by_role("menuitem", name="Disable").count() == 0


def test_a_key_is_made_used_and_revoked(team: Team, open_page: OpenPage) -> None:
    team.join("Bob")
    page = enter(team, open_page, "/settings/account", "bob")
    page.get_by_role("button", name="Make a key").click()
    assert page.get_by_label("administration").count() == 0
    page.get_by_label("Name of the key").fill("nightly build")
    page.get_by_label("It works").select_option("30")
    page.get_by_text("Limits", exact=True).click()
    page.get_by_label("Budget").fill("100000")
    page.get_by_label("Requests a minute").fill("60")
    page.get_by_text("Limits", exact=True).click()
    page.get_by_role("button", name="Make a key").click()
    key = page.get_by_label("The key nightly build", exact=True).input_value()
    page.get_by_text("100,000 tokens each month · 60 requests a minute").wait_for()
    program = team.visitor()
    program.headers["authorization"] = f"Bearer {key}"
    assert program.get("/api/me").json()["name"] == "bob"
    page.reload()
    page.get_by_role("heading", name="nightly build").wait_for()
    assert page.get_by_text(key).count() == page.get_by_label("The key nightly build", exact=True).count() == 0
    page.get_by_role("button", name="Revoke the key nightly build").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    page.get_by_text("You have no keys yet.").wait_for()
    assert program.get("/api/me").status_code == 401


def test_what_is_used_is_shown_to_its_user_and_to_administrators(
    team: Team, open_page: OpenPage, store_address: str
) -> None:
    bob = team.join("Bob")
    spend(store_address, bob.get("/api/me").json()["id"])
    mine = enter(team, open_page, "/settings/usage", "bob")
    mine.get_by_text("Tokens of the 20 latest conversations").wait_for()
    mine.goto(f"{team.running.url}/settings/account")
    mine.get_by_label("By").select_option("model")
    mine.get_by_role("row", name="gpt 1 2 1 $2.00").wait_for()
    mine.get_by_text("3 tokens are of models without a price").wait_for()
    page = enter(team, open_page, "/settings/usage")
    page.get_by_role("row", name="Bob 2").wait_for()
    page.goto(f"{team.running.url}/settings/users")
    row = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Bob"))
    row.get_by_role("button", name="More: Bob").click()
    page.get_by_role("menuitem", name="Budget").click()
    page.get_by_role("dialog").get_by_label("Budget").fill("5000")
    page.get_by_role("dialog").get_by_label("For each").select_option("day")
    page.get_by_role("button", name="Save").click()
    row.get_by_text("5,000 tokens each day").wait_for()
    assert bob.get("/api/me").json()["budget"] == {"amount": 5000, "unit": "tokens", "period": "day"}


def test_a_user_takes_the_data_along_and_deletes_the_account(team: Team, open_page: OpenPage) -> None:
    team.join("Bob")
    page = enter(team, open_page, "/settings/account", "bob")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download my data").click()
    assert saved.value.suggested_filename == "longthread.zip"
    page.get_by_role("button", name="Delete my account").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Password", exact=True).fill(OTHER)
    assert dialog.get_by_role("button", name="Delete for good").is_disabled()
    dialog.get_by_label("To confirm, enter your name: bob").fill("bob")
    dialog.get_by_role("button", name="Delete for good").click()
    dialog.get_by_role("alert").get_by_text("The name or the password is wrong.").wait_for()
    dialog.get_by_label("Password", exact=True).fill(PASSWORD)
    dialog.get_by_role("button", name="Delete for good").click()
    page.wait_for_url("**/login")
    assert [each["name"] for each in team.admin.get("/api/admin/users").json()["users"]] == ["ada"]


def test_an_administrator_erases_a_user(team: Team, open_page: OpenPage) -> None:
    team.join("Bob")
    page = enter(team, open_page, "/settings/users")
    page.get_by_role("button", name="More: Bob").click()
    page.get_by_role("menuitem", name="Erase").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete for good").click()
    page.get_by_role("heading", name="Bob").wait_for(state="detached")
    assert [each["name"] for each in team.admin.get("/api/admin/users").json()["users"]] == ["ada"]


def test_rights_are_granted_beside_what_they_are_for(team: Team, open_page: OpenPage) -> None:
    assert team.admin.post("/api/admin/groups", json={"name": "finance"}).status_code == 201
    bob = team.join("Bob", groups=["finance"])
    clerk = {"definition": {"description": "Keeps the books", "system_prompt": "You keep the books."}}
    assert team.admin.put("/api/catalog/agents/clerk", json=clerk).status_code in (200, 201)
    page = enter(team, open_page, "/settings/agents/clerk")
    part = page.get_by_role("region", name="Who may use it")
    part.get_by_text("Nobody else may use it yet.").wait_for()
    part.get_by_label("To", exact=True).select_option("finance")
    part.get_by_role("button", name="Grant").click()
    part.get_by_label("What finance may do").wait_for()
    assert "clerk" in [each["name"] for each in bob.get("/api/agents").json()["agents"]]
    part.get_by_label("To", exact=True).select_option("Bob")
    part.get_by_label("May", exact=True).select_option("edit")
    part.get_by_role("button", name="Grant").click()
    part.get_by_label("What Bob may do").wait_for()
    assert part.get_by_label("What Bob may do").input_value() == "edit"
    for name in ("Bob", "finance"):
        part.get_by_role("button", name=f"Take it back from {name}").click()
        part.get_by_label(f"What {name} may do").wait_for(state="detached")
    assert "clerk" not in [each["name"] for each in bob.get("/api/agents").json()["agents"]]
    page.goto(f"{team.running.url}/settings/data")
    page.get_by_role("button", name="Rights: demo").click()
    page.get_by_role("dialog").get_by_text("by default").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Take it back from Everyone").click()
    page.get_by_role("dialog").get_by_text("Nobody else may use it yet.").wait_for()
    assert "demo" not in [each["name"] for each in bob.get("/api/sources").json()["sources"]]


@pytest.mark.parametrize(
    ("share", "about"), [(None, "Everyone who can log in to this server"), ("public", "Anyone with the link")]
)
def test_sharing_says_who_may_open_a_link(serve: Any, open_page: OpenPage, share: str | None, about: str) -> None:
    with team_of(serve(SCRIPT, auth="login", share=share)) as team:
        asked = team.admin.post("/api/chat", json={"question": "How many rockets are there?"}).json()
        assert team.admin.get(asked["events"]).status_code == 200
        page = enter(team, open_page, f"/c/{asked['thread_id']}")
        page.locator("main > header").get_by_role("button", name="Share").click()
        page.get_by_role("dialog").get_by_text(about).wait_for()


def test_where_nothing_is_shared_no_link_is_offered(serve: Any, open_page: OpenPage) -> None:
    running = serve(SCRIPT, share="off")
    page = open_page(running, f"/c/{running.answer('How many rockets are there?')['thread_id']}")
    page.get_by_role("button", name="Inspector").wait_for()
    assert page.locator("main > header").get_by_role("button", name="Share").count() == 0
    page.locator("li[data-id] button").last.click()
    page.get_by_role("menuitem", name="Use from your app").wait_for()
    assert page.get_by_role("menuitem", name="Share").count() == 0


def test_an_administrator_manages_groups(team: Team, open_page: OpenPage) -> None:
    bob = team.join("Bob")
    page = enter(team, open_page, "/settings/groups")
    page.get_by_label("Name of a new group").fill("Finance")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="finance 0 members").click()
    page.get_by_label("Add a member").select_option("Bob")
    page.get_by_role("button", name="finance 1 member").wait_for()
    assert bob.get("/api/me").json()["groups"] == ["finance"]
    page.get_by_role("button", name="Take Bob out of the group").click()
    page.get_by_role("button", name="finance 0 members").wait_for()
    page.get_by_role("button", name="Remove the group finance").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.get_by_text("There are no groups yet.").wait_for()


def test_the_audit_log_is_read_by_person_and_by_action(team: Team, open_page: OpenPage) -> None:
    team.join("Bob")
    page = enter(team, open_page, "/settings/audit")
    page.get_by_role("listitem").filter(has_text="ada added a user").wait_for()
    page.get_by_label("What").select_option("login")
    page.get_by_role("listitem").filter(has_text="ada added a user").wait_for(state="detached")
    page.get_by_role("listitem").filter(has_text="ada logged in").first.wait_for()
    page.get_by_label("Who").select_option("Bob")
    page.get_by_role("listitem").filter(has_text="ada logged in").first.wait_for(state="detached")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download as JSON lines").click()
    assert saved.value.suggested_filename == "audit.jsonl"


def test_a_member_sees_an_account_and_nothing_of_administration(team: Team, open_page: OpenPage) -> None:
    team.join("Bob")
    page = enter(team, open_page, "/settings/account", "bob")
    settings = page.get_by_role("navigation", name="Settings")
    settings.get_by_role("link", name="Account").wait_for()
    assert settings.get_by_role("link", name="Users").count() == 0
    page.goto(f"{team.running.url}/settings/users")
    page.get_by_role("alert").get_by_text("Your role may not do this.").wait_for()


def test_a_server_without_login_shows_no_account_and_no_users(serve: Any, open_page: OpenPage) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/settings/you")
    page.get_by_role("heading", name="Theme").wait_for()
    assert page.get_by_role("link", name="Account").count() == 0
    assert page.get_by_role("link", name="Users").count() == 0
    page.keyboard.press("Control+k")
    page.get_by_role("option", name="Settings: Agents").wait_for()
    assert page.get_by_role("option", name="Settings: Users").count() == 0
    for section in ("account", "users", "audit"):
        page.goto(f"{running.url}/settings/{section}")
        page.get_by_text("Page not found.").wait_for()


@pytest.mark.parametrize(("width", "locale", "scheme"), LOOKS)
def test_each_page_of_the_team_can_be_used_by_everyone(
    team: Team, open_page: OpenPage, store_address: str, width: int, locale: str, scheme: str
) -> None:
    name = f"{width}-{locale[:2]}-{scheme}"
    team.admin.post("/api/admin/groups", json={"name": "财务 finance"})
    team.join("Bob", display="Bob, who has quite a long name for a person", groups=["财务 finance"])
    team.invite("eve", role="builder")
    page = enter(team, open_page, "/", width=width, locale=locale, color_scheme=scheme)
    if width < 760:
        page.locator("header button").first.tap()
    page.get_by_role("button", name="ada").click()
    page.get_by_role("menuitem").nth(1).wait_for()
    looked_at(page, f"user-menu-{name}")
    page.request.post(
        f"{team.running.url}/api/me/keys",
        data={"name": "nightly", "scopes": ["chat", "gateway"], "models": ["openai:*"]},
    )
    spend(store_address, team.ada["id"])
    for section in ("account", "users", "groups", "usage", "audit"):
        page.goto(f"{team.running.url}/settings/{section}")
        page.locator({"audit": "main li:nth-child(2)", "usage": "main td"}.get(section, "main li")).first.wait_for()
        if section == "groups":
            page.locator("main li [aria-expanded]").first.click()
            page.locator("main li select").wait_for()
        looked_at(page, f"team-{section}-{name}")
        if section == "account":
            page.locator("main section:nth-of-type(4)").evaluate("(part) => part.scrollIntoView()")
            page.locator("main section:nth-of-type(4) > div > button").click()
            page.locator("summary").click()
            page.locator("main section:nth-of-type(4) [name=parallel]").wait_for()
            looked_at(page, f"team-key-{name}")
            page.locator("main table").evaluate("(table) => table.scrollIntoView()")
            looked_at(page, f"team-mine-{name}")
            page.locator("main section:last-of-type button").click()
            page.get_by_role("dialog").locator("input").first.wait_for()
            looked_at(page, f"team-erase-{name}")
        if section == "users":
            page.locator("main form input").first.fill("newcomer")
            page.locator("main form button[type=submit]").click()
            page.locator("main input[readonly]").wait_for()
            page.locator("main li button").last.click()
            page.get_by_role("menuitem").nth(1).wait_for()
            looked_at(page, f"team-user-menu-{name}")
    page.goto(f"{team.running.url}/settings/agents/analyst")
    page.locator("main form [name=may]").wait_for()
    page.locator("main form [name=may]").evaluate("(field) => field.scrollIntoView()")
    looked_at(page, f"team-grants-{name}")
    page.goto(f"{team.running.url}/settings/data")
    page.locator("main li button[aria-label$=demo]").click()
    page.get_by_role("dialog").locator("[name=may]").wait_for()
    looked_at(page, f"team-grants-source-{name}")
