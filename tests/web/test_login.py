"""Logging in and out on the page, links that set a password, and logins that end while the page is open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.access.team import OTHER, PASSWORD, Team, team_of
from tests.web.conftest import OpenPage, looked_at
from tests.web.looking import answered, ask, ask_held

pytestmark = pytest.mark.browser

SCRIPT = [{"finish": "There are **41** rockets."}]
LOOKS = [
    (1280, "en", "light"),
    (390, "zh-CN", "dark"),
    pytest.param(1280, "zh-CN", "dark", marks=pytest.mark.slow),
    pytest.param(390, "en", "light", marks=pytest.mark.slow),
]


@pytest.fixture
def team(serve: Any) -> Iterator[Team]:
    with team_of(serve(SCRIPT, auth="login")) as team:
        yield team


def log_in(page: Any, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Log in").click()


def path_of(page: Any) -> str:
    found: str = page.evaluate("location.pathname + location.search + location.hash")
    return found


def test_a_login_leads_back_to_where_the_page_was(team: Team, open_page: OpenPage) -> None:
    team.join("Bob")
    page = open_page(team.running, "/settings/data", quiet=False)
    page.wait_for_url("**/login?next=%2Fsettings%2Fdata")
    assert page.get_by_label("Name").get_attribute("autocomplete") == "username"
    assert page.get_by_label("Password", exact=True).get_attribute("autocomplete") == "current-password"
    log_in(page, "bob", OTHER)
    page.get_by_role("alert").get_by_text("The name or the password is wrong.").wait_for()
    log_in(page, "bob")
    page.get_by_role("heading", name="Sources").wait_for()
    assert path_of(page) == "/settings/data"


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example/", "/.//evil.example", "/\\evil.example"]
)
def test_a_login_leads_to_no_other_server(team: Team, open_page: OpenPage, elsewhere: str) -> None:
    team.join("Bob")
    page = open_page(team.running, "/login", quiet=False)
    page.goto(f"{team.running.url}/login?next={elsewhere}")
    log_in(page, "bob")
    page.wait_for_selector("#question")
    assert page.url == f"{team.running.url}/"


def test_the_first_administrator_begins_with_the_link_of_the_log(serve: Any, open_page: OpenPage) -> None:
    running = serve(SCRIPT, auth="login")
    page = open_page(running, "/", quiet=False)
    page.get_by_text("This server has no users yet.").wait_for()
    page.goto(f"{running.url}/login#{running.server._app.state.setup_token}")
    page.get_by_role("heading", name="Set up Longthread").wait_for()
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("New password").fill("short")
    page.get_by_role("button", name="Begin").click()
    page.get_by_text("a password has at least 10 characters").wait_for()
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Show").click()
    assert page.get_by_label("New password").get_attribute("type") == "text"
    page.get_by_role("button", name="Begin").click()
    page.wait_for_selector("#question")
    assert page.request.get(f"{running.url}/api/me").json()["role"] == "admin"


def test_a_link_of_an_invitation_works_once(team: Team, open_page: OpenPage) -> None:
    token = team.invite("Bob")
    page = open_page(team.running, f"/login#{token}", quiet=False)
    page.get_by_role("heading", name="Welcome, bob").wait_for()
    assert page.get_by_label("Name").input_value() == "bob"
    assert page.get_by_label("New password").get_attribute("autocomplete") == "new-password"
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Begin").click()
    page.wait_for_selector("#question")
    other = open_page(team.running, f"/login#{token}", quiet=False)
    other.get_by_role("heading", name="This link does not work any more").wait_for()
    other.get_by_role("button", name="Go to the login").click()
    log_in(other, "bob")
    other.wait_for_selector("#question")


def test_a_provider_s_refusal_is_a_sentence(team: Team, open_page: OpenPage) -> None:
    page = open_page(team.running, "/login?error=account_pending")
    page.get_by_role("alert").get_by_text("Your account waits for an administrator").wait_for()
    page.goto(f"{team.running.url}/login?error=<b>anything</b>")
    page.get_by_role("alert").get_by_text("The login did not succeed.").wait_for()


def test_a_login_that_ends_while_an_answer_comes_leads_to_the_login_and_back(team: Team, open_page: OpenPage) -> None:
    bob = team.join("Bob")
    page = open_page(team.running, "/login", quiet=False)
    log_in(page, "bob")
    page.wait_for_selector("#question")
    ask_held(page, team.running, "How many rockets are there?")
    page.wait_for_url("**/c/*")
    at = path_of(page)
    page.fill("#question", "And not yet asked?")
    assert team.admin.post(f"/api/admin/users/{bob.get('/api/me').json()['id']}/logout").status_code == 204
    page.wait_for_url("**/login?next=**", timeout=20_000)
    team.running.model.shut.clear()
    log_in(page, "bob")
    answered(page)
    assert path_of(page) == at
    assert page.locator("#question").input_value() == "And not yet asked?", "what was typed is kept for its user"


def test_a_server_without_login_shows_nothing_of_it(serve: Any, open_page: OpenPage) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/login")
    page.wait_for_selector("#question")
    assert path_of(page) == "/"
    ask(page, "How many rockets are there?")
    answered(page)


@pytest.mark.parametrize(("width", "locale", "scheme"), LOOKS)
def test_each_screen_of_the_login_can_be_used_by_everyone(
    team: Team, open_page: OpenPage, width: int, locale: str, scheme: str
) -> None:
    name = f"{width}-{locale[:2]}-{scheme}"
    page = open_page(team.running, "/login", width=width, locale=locale, color_scheme=scheme, quiet=False)
    issuers = [{"id": "work", "label": "Keycloak"}, {"id": "other", "label": "Authentik"}]
    told = {"auth": {"mode": "login", "user": None, "setup": False, "issuers": issuers, "share": "users"}}
    page.locator("form").wait_for()
    looked_at(page, f"login-{name}")
    page.route("**/api/info", lambda route: route.fulfill(json=told))
    page.goto(f"{team.running.url}/login?error=login_expired")
    page.get_by_role("link").first.wait_for()
    looked_at(page, f"login-issuers-{name}")
    page.unroute("**/api/info")
    for kind, token in (("invitation", team.invite("Bob")), ("gone", "x")):
        page.goto(f"{team.running.url}/login")
        page.goto(f"{team.running.url}/login#{token}")
        page.locator("h1:not(:has-text('Log in')):not(:text-is('登录'))").wait_for()
        if kind == "invitation":
            page.locator("form button[type=submit]").click()
            page.locator("[aria-invalid=true]").wait_for()
        looked_at(page, f"login-{kind}-{name}")
