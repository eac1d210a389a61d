"""A proxy in front of the server says who the user is, over a real socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from tests.server.access.team import PASSWORD, Team, code_of, team_of
from tests.server.conftest import Running, Serve

from longthread.access.proxy import find_client
from longthread.errors import ServerError
from longthread.server.app import run
from longthread.settings import Settings

pytestmark = pytest.mark.one_backend

SECRET = "of the proxy, sixteen"
GIVEN: dict[str, Any] = {
    "auth": "proxy",
    "auth_header": "X-Remote-User",
    "auth_groups_header": "X-Remote-Groups",
    "trusted_proxies": "127.0.0.1",
    "proxy_secret": SECRET,
    "auth_admin_groups": "admins",
}


@pytest.fixture
def proxied(serve: Serve) -> Running:
    return serve(["An answer."], **GIVEN)


@contextmanager
def through_proxy(running: Running, user: str, groups: str = "", **headers: str) -> Iterator[httpx.Client]:
    """A browser of a user who logged in at the proxy."""
    given = {"X-Remote-User": user, "X-Remote-Groups": groups, "X-Proxy-Secret": SECRET, "Via": "1.1 proxy"} | headers
    with httpx.Client(base_url=running.url, trust_env=False, headers=given) as client:
        yield client


def test_users_come_by_the_name_that_the_proxy_gives(proxied: Running) -> None:
    with through_proxy(proxied, "ada", "admins,a") as ada, through_proxy(proxied, "bob", "a") as bob:
        assert code_of(bob.get("/api/me")) == (403, "signup_refused"), "the first user is an administrator"
        me = ada.get("/api/me").json()
        assert (me["id"], me["name"], me["role"], me["via"]) == ("default", "ada", "admin", "proxy")
        me = bob.get("/api/me").json()
        assert (me["name"], me["role"], me["groups"]) == ("bob", "member", ["a"])
        asked = bob.post("/api/chat", json={"question": "Whose is this?"}).json()
        assert bob.get("/api/chat/history", params={"thread_id": asked["thread_id"]}).status_code == 200
        answer = ada.get("/api/chat/history", params={"thread_id": asked["thread_id"]})
        assert code_of(answer) == (404, "thread_not_found")
        assert code_of(bob.get("/api/admin/users")) == (403, "role_missing")
        users = {each["name"]: each for each in ada.get("/api/admin/users").json()["users"]}
        assert users.keys() == {"ada", "bob"}


@pytest.mark.parametrize(
    "headers",
    [{"X-Proxy-Secret": "wrong"}, {"X-Proxy-Secret": ""}, {"X-Remote-User": "ada\tb"}],
)
def test_a_header_that_does_not_count_is_refused(proxied: Running, headers: dict[str, str]) -> None:
    with through_proxy(proxied, "ada", "admins", **headers) as client:
        for path in ("/api/me", "/api/info", "/api/conversations"):
            assert code_of(client.get(path)) == (403, "proxy_refused")


def test_two_names_are_refused(proxied: Running) -> None:
    twice = [("X-Remote-User", "ada"), ("X-Remote-User", "eve"), ("X-Proxy-Secret", SECRET)]
    assert code_of(httpx.get(f"{proxied.url}/api/me", headers=twice, trust_env=False)) == (403, "proxy_refused")


def test_from_elsewhere_the_header_is_refused_and_not_ignored(serve: Serve) -> None:
    running = serve(["An answer."], **(GIVEN | {"trusted_proxies": "10.0.0.0/8", "proxy_secret": None}))
    with through_proxy(running, "ada", "admins") as client:
        assert code_of(client.get("/api/me")) == (403, "proxy_refused")
        key = {"Authorization": "Bearer lt_k3x9q2ab_" + "a" * 43}
        assert code_of(client.get("/api/me", headers=key)) == (403, "proxy_refused"), "with a key, too"
    assert code_of(httpx.get(f"{running.url}/api/me", trust_env=False)) == (401, "login_needed")
    assert httpx.get(f"{running.url}/health", trust_env=False).status_code == 200


def test_where_users_log_in_here_the_header_says_nothing(serve: Serve) -> None:
    running = serve(["An answer."], **(GIVEN | {"auth": "login"}))
    with team_of(running), through_proxy(running, "ada", "admins") as client:
        assert code_of(client.get("/api/me")) == (401, "login_needed")


def test_a_session_of_another_user_ends(proxied: Running) -> None:
    team = Team(proxied)
    try:
        session = team.admin.cookies["longthread"]
        assert team.admin.get("/api/me").json()["via"] == "session", "straight to the server, a session counts"
        with through_proxy(proxied, "bob", Cookie=f"longthread={session}") as bob:
            assert bob.get("/api/me").json()["name"] == "bob"
        assert code_of(team.admin.get("/api/me")) == (401, "login_needed")
    finally:
        team.close()


def test_a_user_whom_an_administrator_shuts_out_stays_out(proxied: Running) -> None:
    with through_proxy(proxied, "ada", "admins") as ada, through_proxy(proxied, "bob") as bob:
        ada.get("/api/me")
        me = bob.get("/api/me").json()
        assert ada.patch(f"/api/admin/users/{me['id']}", json={"status": "disabled"}).status_code == 200
        assert code_of(bob.get("/api/me")) == (403, "account_disabled")


def test_a_name_that_waits_is_taken_over_and_one_with_a_password_is_not(proxied: Running) -> None:
    with through_proxy(proxied, "ada", "admins") as ada:
        invited = ada.post("/api/admin/users", json={"name": "grace", "role": "builder"})
        assert invited.status_code == 201
        with through_proxy(proxied, "grace") as grace:
            me = grace.get("/api/me").json()
            assert (me["name"], me["role"]) == ("grace", "builder")
        body = {"token": invited.json()["link"]["path"].partition("#")[2], "password": PASSWORD}
        late = httpx.post(f"{proxied.url}/api/links", json=body, trust_env=False)
        assert code_of(late) == (404, "link_unusable"), "the invitation is used up"
        link = ada.post("/api/admin/users", json={"name": "root"}).json()["link"]["path"].partition("#")[2]
        body = {"token": link, "password": PASSWORD}
        assert httpx.post(f"{proxied.url}/api/links", json=body, trust_env=False).status_code == 200
        with through_proxy(proxied, "root") as other:
            assert other.get("/api/me").json()["name"] == "root-2"


@pytest.mark.parametrize("missing", ["auth_header", "trusted_proxies"])
def test_a_server_that_could_believe_no_proxy_does_not_start(missing: str) -> None:
    given = {"auth": "proxy", "auth_header": "X-Remote-User", "trusted_proxies": "10.0.0.0/8", missing: None}
    with pytest.raises(ServerError, match=f"LONGTHREAD_{missing.upper()}"):
        run(Settings.of(**given))


CLIENTS: dict[str, tuple[str | None, str | None, str]] = {
    "no proxy": ("9.9.9.9", "1.1.1.1", "9.9.9.9"),
    "a proxy": ("10.0.0.1", "1.1.1.1", "1.1.1.1"),
    "a proxy that says nothing": ("10.0.0.1", None, "10.0.0.1"),
    "two proxies": ("10.0.0.1", "1.1.1.1, 10.0.0.2", "1.1.1.1"),
    "what the client itself wrote": ("10.0.0.1", "8.8.8.8, 1.1.1.1", "1.1.1.1"),
    "no address": ("10.0.0.1", "1.1.1.1, unknown", "10.0.0.1"),
    "IPv6": ("::ffff:10.0.0.1", "2001:db8::1", "2001:db8::1"),
    "a socket": (None, "1.1.1.1", "1.1.1.1"),
}


@pytest.mark.parametrize(("peer", "forwarded", "client"), CLIENTS.values(), ids=CLIENTS.keys())
def test_wrong_passwords_count_for_who_sent_them(peer: str | None, forwarded: str | None, client: str) -> None:
    """Behind a proxy all peers are one: a stranger's tries would shut everybody out."""
    headers = [] if forwarded is None else [(b"x-forwarded-for", forwarded.encode())]
    asked = {"client": None if peer is None else (peer, 1), "headers": headers}
    assert find_client(Settings.of(trusted_proxies="10.0.0.0/8, unix"), asked) == client


def test_the_address_of_a_session_is_that_of_its_browser(serve: Serve) -> None:
    with team_of(serve(["An answer."], auth="login", trusted_proxies="127.0.0.1")) as team:
        bob: Callable[..., httpx.Response] = team.join("bob").post
        assert bob("/api/logout").status_code == 204
        visitor = team.visitor()
        visitor.headers["X-Forwarded-For"] = "192.0.2.7"
        visitor.post("/api/login", json={"name": "bob", "password": PASSWORD})
        [session] = visitor.get("/api/me/sessions").json()["sessions"]
        assert session["address"] == "192.0.2.7"


def test_who_comes_by_a_proxy_sets_no_password_that_outlives_it(proxied: Running) -> None:
    with through_proxy(proxied, "ada", "admins") as ada:
        me = ada.get("/api/me").json()
        body = {"current": None, "password": PASSWORD}
        assert code_of(ada.put("/api/me/password", json=body)) == (422, "password_refused")
        assert ada.get("/api/me").json()["has_password"] is False
        answer = httpx.post(f"{proxied.url}/api/login", json={"name": "ada", "password": PASSWORD}, trust_env=False)
        assert code_of(answer) == (401, "login_failed")
        path = ada.post(f"/api/admin/users/{me['id']}/link", json={"kind": "reset"}).json()["path"]
        body = {"token": path.partition("#")[2], "password": PASSWORD}
        assert httpx.post(f"{proxied.url}/api/links", json=body, trust_env=False).status_code == 200
