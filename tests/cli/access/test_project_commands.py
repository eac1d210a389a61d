"""`longthread projects`, on a store that no server has open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.cli.access.test_user_commands import listed

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


@pytest.mark.new_database
def test_a_project_has_members(run: Run) -> None:
    for name in ("ada", "bob"):
        run("users", "add", name)
    assert run("projects", "add", "Sales", "--manager", "ada", "--member", "bob").exit_code == 0
    [project] = listed(run, "projects", "list")
    assert [(each["name"], each["may"]) for each in project["members"]] == [("ada", "manage"), ("bob", "use")]
    assert run("projects", "members", "Sales", "--remove", "bob").exit_code == 0
    [project] = listed(run, "projects", "list")
    assert [each["name"] for each in project["members"]] == ["ada"]
    assert "would have no manager" in str(run("projects", "members", "Sales", "--remove", "ada", code=2).exception)
    assert run("projects", "remove", project["id"]).exit_code == 0
    assert listed(run, "projects", "list") == []


@pytest.mark.new_database
def test_without_a_login_a_project_is_yours(run: Run) -> None:
    assert run("projects", "add", "Sales").exit_code == 0
    [project] = listed(run, "projects", "list")
    assert project["members"] == [{"id": "default", "name": "default", "may": "manage"}]


@pytest.mark.new_database
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (("projects", "add", "Sales"), 2, "Say with --manager"),
        (("projects", "add", " ", "--manager", "ada"), 2, "A project's name has"),
        (("projects", "add", "Sales", "--manager", "eve"), 3, "There is no user eve"),
        (("projects", "remove", "Sales"), 3, "There is no project Sales"),
        (("projects", "members", "Sales"), 3, "There is no project Sales"),
    ],
)
def test_what_cannot_be_done_is_said(run: Run, command: tuple[str, ...], code: int, says: str) -> None:
    run("users", "add", "ada")
    assert says in str(run(*command, code=code).exception)
    assert listed(run, "projects", "list") == []
