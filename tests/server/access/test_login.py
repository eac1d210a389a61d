"""Logins over a real socket: the first user, passwords, cookies, invitations, and what ends a login."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from argon2 import PasswordHasher
from tests.server.access.team import OTHER, PASSWORD, Team, code_of, team_of
from tests.server.conftest import Serve

from longthread.access import passwords
from longthread.errors import ExtraMissing, LoginThrottled, ServerError
from longthread.server import authentication
from longthread.server.authentication import expect_login
from longthread.settings import Settings
from longthread.store.driver import Driver

pytestmark = pytest.mark.one_backend


@pytest.fixture
def team(serve: Serve) -> Iterator[Team]:
    with team_of(serve(["An answer."], auth="login")) as team:
        yield team


def test_the_first_user_takes_over_what_the_server_kept_before(serve: Serve) -> None:
    before = serve(["An answer."])
    asked = before.answer("Is this kept?")
    before.stop()
    with team_of(serve(["An answer."], auth="login")) as team:
        assert (team.ada["id"], team.ada["name"], team.ada["role"]) == ("default", "ada", "admin")
        found = team.admin.get("/api/conversations").json()["conversations"]
        assert [each["id"] for each in found] == [asked["thread_id"]]
        bob = team.join("Bob")
        assert bob.get("/api/conversations").json()["conversations"] == []
        answer = bob.get("/api/chat/history", params={"thread_id": asked["thread_id"]})
        assert code_of(answer) == (404, "thread_not_found")


def test_who_is_not_logged_in_learns_how_to_log_in_alone(team: Team) -> None:
    visitor = team.visitor()
    auth = {"mode": "login", "user": None, "setup": False, "issuers": [], "share": "users"}
    assert visitor.get("/api/info").json() == {"auth": auth}
    answer = visitor.get("/api/conversations")
    assert code_of(answer) == (401, "login_needed")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert visitor.get("/").status_code == visitor.get("/health").status_code == 200


def test_a_setup_link_makes_one_user(team: Team) -> None:
    body = {"token": team.setup_token, "password": PASSWORD, "name": "Eve"}
    assert code_of(team.visitor().post("/api/links", json=body)) == (404, "link_unusable")


def test_a_password_logs_in_and_a_logout_ends_that(team: Team) -> None:
    team.join("Bob")
    bob = team.visitor()
    answer = bob.post("/api/login", json={"name": " ＢＯＢ ", "password": PASSWORD})
    assert answer.json()["user"]["name"] == "bob"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Secure" not in cookie
    assert bob.get("/api/me").json()["role"] == "member"
    assert bob.post("/api/logout").status_code == 204
    stolen = team.visitor()
    stolen.headers["cookie"] = cookie.partition(";")[0]
    assert code_of(stolen.get("/api/me")) == (401, "login_needed")


@pytest.mark.parametrize(
    ("name", "password"), [("bob", "wrong password"), ("nobody", PASSWORD), ("", PASSWORD), ("ada", OTHER)]
)
def test_a_wrong_name_or_password_is_refused_in_one_way(team: Team, name: str, password: str) -> None:
    team.join("Bob")
    answer = team.visitor().post("/api/login", json={"name": name, "password": password})
    assert code_of(answer) == (401, "login_failed")
    assert "set-cookie" not in answer.headers


def test_a_login_does_the_same_work_whatever_the_name(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """`benchmarks/access.py` measures that it takes the same time."""
    work: list[str] = []

    def noted(name: str) -> Callable[..., Any]:
        own = getattr(PasswordHasher, name)

        def call(*args: Any, **about: Any) -> Any:
            work.append(name)
            return own(*args, **about)

        return call

    for each in ("verify", "hash"):
        monkeypatch.setattr(PasswordHasher, each, noted(each))
    nobodys: Any = passwords._nobodys_hash
    monkeypatch.setattr(passwords, "_nobodys_hash", cache(nobodys.__wrapped__))  # as after a start
    done = []
    for name in ("ada", "nobody", "", "ada", "nobody"):
        work.clear()
        answer = team.visitor().post("/api/login", json={"name": name, "password": "wrong password"})
        assert code_of(answer) == (401, "login_failed")
        done.append(list(work))
    assert done == [["hash", "verify"], *[["verify"]] * 4]


def test_wrong_passwords_slow_down_the_account_on_all_servers(team: Team, serve: Serve) -> None:
    team.join("Bob")
    clients = [team.visitor(), serve(["An answer."], auth="login").client]
    for number in range(5):
        answer = clients[number % 2].post("/api/login", json={"name": "bob", "password": "wrong password"})
        assert code_of(answer) == (401, "login_failed")
    for client in clients:
        answer = client.post("/api/login", json={"name": "bob", "password": PASSWORD})
        assert code_of(answer) == (429, "login_throttled")
        assert int(answer.headers["retry-after"]) >= 1


def test_a_new_password_ends_other_logins(team: Team) -> None:
    first = team.join("Bob")
    second = team.visitor()
    second.post("/api/login", json={"name": "bob", "password": PASSWORD})
    assert len(first.get("/api/me/sessions").json()["sessions"]) == 2
    wrong = {"current": OTHER, "password": OTHER}
    assert code_of(second.put("/api/me/password", json=wrong)) == (401, "login_failed")
    assert code_of(second.put("/api/me/password", json={"current": PASSWORD, "password": "short"}))[0] == 422
    assert second.put("/api/me/password", json={"current": PASSWORD, "password": OTHER}).status_code == 204
    assert second.get("/api/me").status_code == 200
    assert code_of(first.get("/api/me")) == (401, "login_needed")


def test_a_user_who_is_shut_out_reads_nothing_more(team: Team) -> None:
    bob = team.join("Bob")
    me = bob.get("/api/me").json()
    assert team.admin.patch(f"/api/admin/users/{me['id']}", json={"status": "disabled"}).status_code == 200
    assert code_of(bob.get("/api/me")) == (401, "login_needed")
    answer = team.visitor().post("/api/login", json={"name": "bob", "password": PASSWORD})
    assert code_of(answer) == (401, "login_failed")
    token = team.admin.post(f"/api/admin/users/{me['id']}/link").json()["path"].partition("#")[2]
    body = {"token": token, "password": OTHER}
    assert code_of(team.visitor().post("/api/links", json=body)) == (404, "link_unusable")


def test_the_last_administrator_stays(team: Team) -> None:
    for change in ({"role": "member"}, {"status": "disabled"}):
        answer = team.admin.patch(f"/api/admin/users/{team.ada['id']}", json=change)
        assert code_of(answer) == (409, "last_admin")


def test_only_administrators_administrate(team: Team) -> None:
    bob = team.join("Bob", role="builder")
    assert code_of(bob.get("/api/admin/users")) == (403, "role_missing")
    assert code_of(bob.post("/api/admin/groups", json={"name": "everyone"})) == (403, "role_missing")


def test_groups_have_members(team: Team) -> None:
    group = team.admin.post("/api/admin/groups", json={"name": "Finance"}).json()
    bob = team.join("Bob", groups=["finance"])
    assert bob.get("/api/me").json()["groups"] == ["finance"]
    me = bob.get("/api/me").json()
    path = f"/api/admin/groups/{group['id']}/members/{me['id']}"
    assert team.admin.delete(path).status_code == 204
    assert bob.get("/api/me").json()["groups"] == []
    assert team.admin.put(path).status_code == 204
    assert [each["name"] for each in team.admin.get(path.rpartition("/")[0]).json()["users"]] == ["bob"]
    assert team.admin.delete(f"/api/admin/groups/{group['id']}").status_code == 204
    assert team.admin.get("/api/admin/groups").json()["groups"] == []


def test_a_link_of_an_invitation_works_once(team: Team) -> None:
    token = team.invite("Bob")
    visitor = team.visitor()
    assert visitor.post("/api/links/look", json={"token": token}).json() == {"kind": "invitation", "name": "bob"}
    assert visitor.post("/api/links", json={"token": token, "password": PASSWORD}).status_code == 200
    for path in ("/api/links", "/api/links/look"):
        body = {"token": token, **({"password": PASSWORD} if path == "/api/links" else {})}
        assert code_of(visitor.post(path, json=body)) == (404, "link_unusable")


def test_two_cookies_of_the_name_are_none(team: Team) -> None:
    bob = team.join("Bob")
    [(name, value)] = bob.cookies.items()
    client = team.visitor()
    client.headers["cookie"] = f"{name}={value}; {name}={value}"
    assert code_of(client.get("/api/me")) == (401, "login_needed")


@pytest.mark.parametrize("about", [{"host": "0.0.0.0"}, {"public_url": "https://longthread.example"}])
def test_a_server_without_a_login_does_not_start_where_others_reach_it(about: dict[str, str]) -> None:
    with pytest.raises(ServerError, match="LONGTHREAD_AUTH=login.*LONGTHREAD_AUTH=proxy.*--no-login"):
        expect_login(Settings.of(**about))
    expect_login(Settings.of(**about, no_login=True))
    expect_login(Settings.of(**about, auth="login"))
    expect_login(Settings.of())


def test_what_logins_need_is_asked_for_before_a_server_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "find_spec", lambda name: None if name == "argon2" else object())
    with pytest.raises(ExtraMissing, match="argon2.*pip install"):
        expect_login(Settings.of(auth="login"))


def test_a_page_of_another_site_uses_no_cookie_but_a_key_that_it_has(team: Team) -> None:
    bob = team.join("Bob")
    key = bob.post("/api/me/keys", json={"name": "k", "scopes": ["chat"]}).json()["key"]
    evil = {"Origin": "https://evil.example"}
    assert code_of(bob.post("/api/conversations", json={}, headers=evil)) == (403, "cross_origin")
    answer = team.visitor().post("/api/conversations", json={}, headers=evil | {"Authorization": f"Bearer {key}"})
    assert answer.status_code == 201
    assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_nobody_is_kept_out_long_by_the_wrong_passwords_of_others(store: Driver) -> None:
    """Whoever knows a name may send wrong passwords for it, from many addresses."""
    async with store.writing() as tx:
        for number in range(40):
            await passwords.note_failure(tx, "ada", f"192.0.2.{number}")
            await passwords.note_failure(tx, f"user {number}", "192.0.2.99")
        with pytest.raises(LoginThrottled) as account:
            await passwords.expect_tries_left(tx, "ada", "198.51.100.1")
        with pytest.raises(LoginThrottled) as address:
            await passwords.expect_tries_left(tx, "bob", "192.0.2.99")
    assert 20 <= account.value.seconds <= 30
    assert 800 <= address.value.seconds <= 900


def test_wrong_passwords_of_one_member_stop_no_other(team: Team) -> None:
    """Members are behind one proxy, or come by a Unix socket: each is known by the session."""
    bob, eve = team.join("Bob"), team.join("Eve")
    wrong = {"current": "wrong password", "password": OTHER}
    for number in range(5):
        assert code_of(eve.put("/api/me/password", json=wrong)) == (401, "login_failed"), number
    assert code_of(eve.put("/api/me/password", json=wrong)) == (429, "login_throttled")
    right = {"current": PASSWORD, "password": OTHER}
    assert bob.put("/api/me/password", json=right).status_code == 204
