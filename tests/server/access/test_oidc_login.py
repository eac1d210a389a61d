"""A browser logs in at an issuer and comes back, over real sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.access.issuer import CLIENT, SECRET, Claims, Issuer, rsa_key, sign
from tests.server.access.team import Team, code_of, team_of
from tests.server.conftest import Serve

from longthread.errors import ServerError
from longthread.server.app import run
from longthread.settings import Settings

pytestmark = pytest.mark.one_backend

PUBLIC = "http://localhost:8765"
"""Where the issuer sends browsers back to. The tests follow it to the socket that the server has."""


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer().running() as running:
        yield running


@pytest.fixture
def start(serve: Serve, issuer: Issuer) -> Callable[..., Any]:
    """Starts a server with this issuer: `start(oidc_signup="yes")`."""
    given = {"auth": "login", "public_url": PUBLIC, "oidc_issuer": issuer.url, "oidc_client_id": CLIENT}
    given |= {"oidc_client_secret": SECRET, "oidc_signup": "yes", "oidc_label": "Example"}
    return lambda **changes: serve(["An answer."], **(given | changes))


@pytest.fixture
def team(start: Callable[..., Any]) -> Iterator[Team]:
    with team_of(start()) as team:
        yield team


def begin(browser: httpx.Client, path: str = "/", issuer: str = "sso") -> httpx.Response:
    answer = browser.get(f"/api/oidc/{issuer}/start", params={"next": path})
    assert answer.status_code == 303, answer.text
    return answer


def visit(issuer_page: str) -> str:
    """Log in at the issuer. Return the path and the query that it sends the browser back to."""
    with httpx.Client(trust_env=False, verify=False) as elsewhere:
        back = elsewhere.get(issuer_page).headers["location"]
    assert back.startswith(f"{PUBLIC}/api/oidc/")
    return str(back.removeprefix(PUBLIC))


def log_in(browser: httpx.Client, path: str = "/") -> httpx.Response:
    return browser.get(visit(begin(browser, path).headers["location"]))


def error_of(answer: httpx.Response) -> str:
    assert answer.status_code == 303, answer.text
    assert "longthread=" not in answer.headers.get("set-cookie", "").replace("longthread-login=", "")
    page = urlsplit(answer.headers["location"])
    assert page.path == "/login"
    return parse_qs(page.query)["error"][0]


def users_of(team: Team) -> set[str]:
    return {each["name"] for each in team.admin.get("/api/admin/users").json()["users"]}


def test_a_person_logs_in_and_gets_to_the_page_that_was_asked_for(team: Team, issuer: Issuer) -> None:
    browser = team.visitor()
    assert browser.get("/api/info").json()["auth"]["issuers"] == [{"id": "sso", "label": "Example"}]
    answer = log_in(browser, "/c/42")
    assert (answer.status_code, answer.headers["location"]) == (303, "/c/42")
    assert answer.headers["cache-control"] == "no-store"
    issuer.person |= {"preferred_username": "changed"}
    me = browser.get("/api/me").json()
    assert (me["name"], me["display"], me["role"]) == ("ada-2", "Ada Lovelace", "member")
    assert (me["groups"], me["via"], me["issuer"], me["has_password"]) == (["analysts"], "session", "sso", False)
    assert log_in(team.visitor()).status_code == 303
    assert users_of(team) == {"ada", "ada-2"}
    [session] = [each for each in browser.get("/api/me/sessions").json()["sessions"] if each["current"]]
    assert session["via"] == "session"


def test_a_login_lasts_fourteen_days_at_most(team: Team) -> None:
    browser = team.visitor()
    cookies = log_in(browser).headers.get_list("set-cookie")
    [cookie] = [each for each in cookies if each.startswith("longthread=")]
    assert f"Max-Age={14 * 86_400}" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


def test_the_cookie_of_a_login_under_way_is_gone_afterwards(team: Team) -> None:
    browser = team.visitor()
    begun = begin(browser)
    [cookie] = begun.headers.get_list("set-cookie")
    assert cookie.startswith("longthread-login=")
    for part in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=600"):
        assert part in cookie
    assert browser.get(visit(begun.headers["location"])).status_code == 303
    assert "longthread-login" not in browser.cookies


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_a_login_leads_nowhere_else(team: Team, path: str) -> None:
    assert log_in(team.visitor(), path).headers["location"] == "/"


def test_a_planted_session_is_never_that_of_who_logs_in(team: Team) -> None:
    """Session fixation: the attacker knows a cookie, valid or not, that the browser has before."""
    eve = team.join("eve")
    planted = eve.cookies["longthread"]
    browser = team.visitor()
    browser.cookies.set("longthread", planted, domain="127.0.0.1", path="/")
    log_in(browser)
    own = [each.value for each in browser.cookies.jar if each.name == "longthread" and each.value != planted]
    assert len(own) == 1
    thief = team.visitor()
    thief.headers["cookie"] = f"longthread={planted}"
    assert code_of(thief.get("/api/me")) == (401, "login_needed"), "the session that the browser had has ended"


def test_each_login_has_a_session_of_its_own(team: Team) -> None:
    browsers = [team.visitor(), team.visitor()]
    for browser in browsers:
        log_in(browser)
    assert browsers[0].cookies["longthread"] != browsers[1].cookies["longthread"]
    assert browsers[0].delete("/api/me/sessions").status_code == 204
    assert [browser.get("/api/me").status_code for browser in browsers] == [401, 401]


def test_an_answer_of_another_browser_is_refused(team: Team) -> None:
    """Login CSRF: an attacker's answer in somebody's browser."""
    mine, other = team.visitor(), team.visitor()
    back = visit(begin(mine).headers["location"])
    assert error_of(other.get(back)) == "login_expired"
    begin(other)
    assert error_of(other.get(back)) == "login_expired"
    assert users_of(team) == {"ada"}
    assert mine.get(back).headers["location"] == "/"


def test_an_answer_counts_once(team: Team, issuer: Issuer) -> None:
    browser = team.visitor()
    begun = begin(browser)
    back, carried = visit(begun.headers["location"]), browser.cookies["longthread-login"]
    assert browser.get(back).headers["location"] == "/"
    assert error_of(browser.get(back)) == "login_expired"
    again = team.visitor()
    again.headers["cookie"] = f"longthread-login={carried}"
    assert error_of(again.get(back)) == "issuer_answer_refused"
    assert code_of(again.get("/api/me")) == (401, "login_needed")


@pytest.mark.parametrize("query", ["", "code=x", "code=x&state=y", "state=y&error=access_denied", "error=<script>"])
def test_an_answer_without_its_login_is_refused(team: Team, query: str) -> None:
    browser = team.visitor()
    assert error_of(browser.get(f"/api/oidc/sso/callback?{query}")) == "login_expired"
    begin(browser)
    assert error_of(browser.get(f"/api/oidc/sso/callback?{query}")) == "login_expired"
    assert users_of(team) == {"ada"}


def unsigned(claims: Claims) -> str:
    return f"{sign(claims, rsa_key('one')).rpartition('.')[0]}."


WRONG: dict[str, dict[str, Any]] = {
    "a nonce": {"lie": lambda claims: claims | {"nonce": "n"}},
    "an audience": {"lie": lambda claims: claims | {"aud": "another"}},
    "no subject": {"lie": lambda claims: claims | {"sub": ""}},
    "no signature": {"forge": unsigned},
    "no client": {"secret": "another"},
}


def test_nothing_is_written_for_a_wrong_answer(team: Team, issuer: Issuer) -> None:
    for name, wrong in WRONG.items():
        right = {attribute: getattr(issuer, attribute) for attribute in wrong}
        for attribute, value in wrong.items():
            setattr(issuer, attribute, value)
        browser = team.visitor()
        assert error_of(log_in(browser)) == "issuer_answer_refused", name
        assert users_of(team) == {"ada"}
        assert code_of(browser.get("/api/me")) == (401, "login_needed")
        for attribute, value in right.items():
            setattr(issuer, attribute, value)
    assert log_in(team.visitor()).headers["location"] == "/"


def test_a_person_who_leaves_the_provider_comes_back_to_the_login(team: Team, issuer: Issuer) -> None:
    issuer.denies = True
    assert error_of(log_in(team.visitor())) == "login_denied"


def test_a_provider_that_is_not_there_is_said_to_be(start: Callable[..., Any]) -> None:
    with team_of(start(oidc_issuer="http://127.0.0.1:9")) as team:
        assert error_of(team.visitor().get("/api/oidc/sso/start")) == "issuer_unreachable"
        assert team.visitor().get("/api/oidc/sso/logout").headers["location"] == "/login"


def test_a_provider_that_is_not_set_is_not_found(team: Team) -> None:
    for way in ("start", "callback", "logout"):
        assert code_of(team.visitor().get(f"/api/oidc/other/{way}")) == (404, "issuer_not_found")


def test_who_signs_up_waits_for_an_administrator(start: Callable[..., Any]) -> None:
    with team_of(start(oidc_signup="pending")) as team:
        browser = team.visitor()
        assert error_of(log_in(browser)) == "account_pending"
        assert code_of(browser.get("/api/me")) == (401, "login_needed")
        [waits] = [each for each in team.admin.get("/api/admin/users").json()["users"] if each["name"] == "ada-2"]
        assert waits["status"] == "pending"
        team.admin.patch(f"/api/admin/users/{waits['id']}", json={"status": "active"})
        assert log_in(browser).headers["location"] == "/"
        team.admin.patch(f"/api/admin/users/{waits['id']}", json={"status": "disabled"})
        assert code_of(browser.get("/api/me")) == (401, "login_needed")
        assert error_of(log_in(browser)) == "account_disabled"


@pytest.mark.parametrize(
    ("settings", "code"),
    [({"oidc_signup": "no"}, "signup_refused"), ({"oidc_allowed_domains": "b.example"}, "domain_refused")],
)
def test_who_may_not_come_in_is_said_so(start: Callable[..., Any], settings: dict[str, str], code: str) -> None:
    with team_of(start(**settings)) as team:
        assert error_of(log_in(team.visitor())) == code
        assert users_of(team) == {"ada"}


def test_the_first_administrator_may_come_from_the_provider(start: Callable[..., Any], issuer: Issuer) -> None:
    running = start(oidc_admin_groups="admins", oidc_signup="pending")
    with httpx.Client(base_url=running.url, trust_env=False) as browser:
        assert error_of(log_in(browser)) == "signup_refused", "somebody else is not the first user"
        issuer.person["groups"] = ["admins"]
        assert log_in(browser).headers["location"] == "/"
        me = browser.get("/api/me").json()
        assert (me["id"], me["name"], me["role"]) == ("default", "ada", "admin")


def test_logins_are_in_the_audit_log_and_wrong_answers_are_not(start: Callable[..., Any], issuer: Issuer) -> None:
    with team_of(start(oidc_signup="pending", oidc_allowed_domains="example.org")) as team:
        assert error_of(log_in(team.visitor())) == "account_pending"
        issuer.person |= {"sub": "2", "email": "eve@evil.example"}
        assert error_of(log_in(team.visitor())) == "domain_refused"
        issuer.lie = lambda claims: claims | {"nonce": "n"}
        assert error_of(log_in(team.visitor())) == "issuer_answer_refused"
        rows = team.admin.get("/api/admin/audit").json()["rows"][::-1]
        told = [(each["action"], each["outcome"], each["detail"]) for each in rows]
        assert told[-3:] == [
            ("user.add", "done", {"by": "oidc", "status": "pending"}),
            ("login", "failed", {"error": "account_pending", "issuer": "sso"}),
            ("login", "failed", {"error": "domain_refused", "issuer": "sso"}),
        ]
        assert "evil" not in str(rows)


def test_nobody_gives_themselves_an_address_that_leads_to_an_account(start: Callable[..., Any]) -> None:
    """Who has the address of somebody else would get what that person asks here."""
    with team_of(start(oidc_link_by_email=True)) as team:
        eve = team.join("eve")
        assert code_of(eve.patch("/api/me", json={"email": "ada@example.org"})) == (403, "role_missing")
        assert eve.patch("/api/me", json={"display": "Eve"}).status_code == 200
        person = team.visitor()
        assert log_in(person).headers["location"] == "/"
        assert person.get("/api/me").json()["name"] == "ada-2"


def test_a_login_begun_at_one_server_ends_at_another(start: Callable[..., Any]) -> None:
    with team_of(start()) as team:
        other = start()
        browser = team.visitor()
        back = visit(begin(browser).headers["location"])
        with httpx.Client(base_url=other.url, trust_env=False, cookies=browser.cookies) as there:
            assert there.get(back).headers["location"] == "/"
            assert there.get("/api/me").json()["name"] == "ada-2"


def test_a_login_of_one_provider_does_not_end_at_another(start: Callable[..., Any], issuer: Issuer) -> None:
    second = {"id": "second", "issuer": issuer.url, "client_id": CLIENT, "client_secret": SECRET}
    with team_of(start(oidc_issuers=[second])) as team:
        browser = team.visitor()
        back = visit(begin(browser).headers["location"])
        assert error_of(browser.get(back.replace("/sso/", "/second/"))) == "login_expired"


def test_the_login_at_the_provider_ends_too(team: Team, issuer: Issuer) -> None:
    browser = team.visitor()
    log_in(browser)
    me = browser.get("/api/me").json()
    assert browser.post("/api/logout").status_code == 204
    leads = browser.get(f"/api/oidc/{me['issuer']}/logout")
    assert leads.status_code == 303
    assert leads.headers["location"].startswith(f"{issuer.url}/logout?")
    assert parse_qs(urlsplit(leads.headers["location"]).query)["post_logout_redirect_uri"] == [f"{PUBLIC}/login"]


def test_a_server_without_login_has_no_providers(start: Callable[..., Any]) -> None:
    running = start(auth="local", public_url=None)
    assert code_of(running.client.get("/api/oidc/sso/start")) == (404, "issuer_not_found")


def test_a_provider_needs_an_address_to_send_browsers_back_to(issuer: Issuer) -> None:
    with pytest.raises(ServerError, match="LONGTHREAD_PUBLIC_URL"):
        run(Settings.of(auth="login", oidc_issuer=issuer.url, oidc_client_id=CLIENT))
