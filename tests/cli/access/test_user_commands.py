"""`longthread users` and `longthread groups`, on a store that no server has open."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


def listed(run: Run, *command: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*command, "--json").stdout.splitlines()]


@pytest.mark.new_database
def test_a_user_is_added_invited_and_shut_out(run: Run) -> None:
    link = run("users", "add", "Ada", "--admin", "--adopt", "default").stdout.strip()
    assert "/login#" in link
    assert run("users", "add", "Bob", "--builder", "--email", "bob@example.com").exit_code == 0
    ada, bob = listed(run, "users", "list")
    assert (ada["id"], ada["name"], ada["role"], ada["status"]) == ("default", "ada", "admin", "pending")
    assert (bob["role"], bob["status"]) == ("builder", "pending")
    assert run("users", "enable", "ada").exit_code == 0
    assert run("users", "disable", "bob").exit_code == 0
    assert [each["status"] for each in listed(run, "users", "list")] == ["active", "disabled"]
    assert run("users", "role", "bob", "member").exit_code == 0
    assert run("users", "reset", "bob").stdout.strip() != link
    assert listed(run, "users", "sessions", "bob") == []


@pytest.mark.new_database
def test_groups_have_members(run: Run) -> None:
    run("users", "add", "ada")
    assert run("groups", "add", "Finance", "--user", "ada").exit_code == 0
    assert run("users", "add", "bob", "--group", "finance").exit_code == 0
    [group] = listed(run, "groups", "list")
    assert (group["name"], group["origin"], group["members"]) == ("finance", "local", ["ada", "bob"])
    assert run("groups", "remove", "finance", "--user", "ada").exit_code == 0
    assert listed(run, "groups", "list")[0]["members"] == ["bob"]
    assert run("groups", "remove", "finance").exit_code == 0
    assert listed(run, "groups", "list") == []


@pytest.mark.new_database
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (("users", "add", "ADA"), 2, "The name ada is taken"),
        (("users", "add", "  "), 2, "is no name"),
        (("users", "add", "bob", "--admin", "--builder"), 2, "leave out one"),
        (("users", "add", "bob", "--group", "nobodys"), 3, "There is no group nobodys"),
        (("users", "role", "ada", "king"), 2, "is no role"),
        (("users", "role", "eve", "admin"), 3, "There is no user eve"),
        (("users", "disable", "ada"), 2, "last active administrator"),
        (("users", "budget", "ada", "much"), 2, "--budget is 'much'"),
        (("groups", "remove", "nobodys"), 3, "There is no group nobodys"),
    ],
)
def test_what_cannot_be_done_is_said(run: Run, command: tuple[str, ...], code: int, says: str) -> None:
    run("users", "add", "ada", "--admin")
    run("users", "enable", "ada")
    before = listed(run, "users", "list")
    answer = run(*command, code=code)
    assert says in str(answer.exception)
    assert listed(run, "users", "list") == before


@pytest.mark.new_database
def test_what_is_changed_here_is_in_the_audit_log(run: Run) -> None:
    run("users", "add", "ada", "--admin")
    run("users", "enable", "ada")
    run("groups", "add", "finance", "--user", "ada")
    run("keys", "add", "ci", "--user", "ada")
    found = listed(run, "audit")
    assert [each["action"] for each in found] == ["key.make", "member.add", "group.add", "user.change", "user.add"]
    assert {(each["actor"], each["via"]) for each in found} == {("", "command")}
    assert [each["action"] for each in listed(run, "audit", "--action", "group.add")] == ["group.add"]
    assert listed(run, "audit", "--user", "ada") == []
    assert len(listed(run, "audit", "--since", "1d", "--limit", "2")) == 2
    assert "group.add" in run("audit").stdout
    assert "is none of the actions" in str(run("audit", "--action", "dance", code=2).exception)


@pytest.mark.new_database
def test_a_user_is_exported_and_forgotten(run: Run, tmp_path: Path) -> None:
    run("users", "add", "ada", "--admin")
    run("users", "enable", "ada")
    run("users", "add", "bob", "--email", "bob@example.org")
    file = tmp_path / "bob.zip"
    assert run("users", "export", "bob", "--to", str(file)).exit_code == 0
    with zipfile.ZipFile(file) as archive:
        assert json.loads(archive.read("account.json"))["email"] == "bob@example.org"
    assert "is there already" in str(run("users", "export", "bob", "--to", str(file), code=2).exception)
    run("users", "forget", "bob", text="n\n", code=1)
    gone = run("users", "forget", "bob", "--yes", "--json")
    assert json.loads(gone.stdout)["problems"] == []
    assert [each["name"] for each in listed(run, "users", "list")] == ["ada"]
    run("users", "forget", "bob", "--yes", code=3)
    assert "last active administrator" in str(run("users", "forget", "ada", "--yes", code=2).exception)
    assert [each["action"] for each in listed(run, "audit")][:2] == ["user.forget", "person.export"]
