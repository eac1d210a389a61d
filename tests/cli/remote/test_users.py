"""A server with a login: a command is its key's user, and may what the key may."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.cli.remote.conftest import Command, ServeProcess

from longthread.errors import ScopeMissing, ServerKeyRefused, ThreadNotFound

pytestmark = pytest.mark.one_backend

SECRET = "7f0c1a52-1d1e-7c55-9d0b-5ec2e7b1a001"
"""The id of a conversation."""


@pytest.fixture
def make_key(command: Command, store_address: str) -> Callable[..., str]:
    """Makes a key of a user, who is added."""

    def make(user: str, *scopes: str) -> str:
        command("users", "add", user, "--database", store_address)
        command("users", "enable", user, "--database", store_address)
        given = [option for scope in scopes for option in ("--scope", scope)]
        made = command("keys", "add", "laptop", "--user", user, *given, "--json", "--database", store_address)
        return str(json.loads(made.stdout)["key"])

    return make


@pytest.fixture
def url(serve: ServeProcess) -> str:
    """A server in login mode."""
    return serve("--source", "demo", "--model", "demo", LONGTHREAD_AUTH="login")


def test_each_key_works_for_its_user_alone(
    command: Command, url: str, make_key: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = make_key("ada", "chat", "memories"), make_key("bob", "chat", "memories")
    assert f"Logged in to {url} as ada." in command("login", url, "--key-stdin", text=ada).stdout
    assert json.loads(command("whoami", "--json").stdout)["name"] == "ada"
    shown = command("ask", "How many rockets are there?", "-t", SECRET)
    assert "41" in shown.stdout
    command("memories", "add", "Ada likes rockets.")
    assert SECRET in command("threads", "list").stdout
    command("login", url, "--key-stdin", text=bob)
    assert SECRET not in command("threads", "list").output
    assert "rockets" not in command("memories", "list").output
    assert "41" not in command("recall", "rockets").output
    assert isinstance(command("recall", "rockets", "-t", SECRET, code=2).exception, ThreadNotFound)
    for words in (
        ("threads", "show", SECRET[:13]),
        ("resume", SECRET),
        ("threads", "delete", SECRET, "-y"),
    ):
        assert isinstance(command(*words, code=2).exception, ThreadNotFound)
    monkeypatch.setenv("LONGTHREAD_KEY", ada)
    assert SECRET in command("threads", "list", "--server", url).stdout
    assert SECRET not in command("threads", "list").output


def test_a_key_may_what_its_scopes_say(command: Command, url: str, make_key: Callable[..., str]) -> None:
    command("login", url, "--key-stdin", text=make_key("ada", "read"))
    assert command("threads", "list").stdout == ""
    asked = command("ask", "How many rockets are there?", code=2)
    assert isinstance(asked.exception, ScopeMissing) and "chat" in str(asked.exception)
    assert isinstance(command("memories", "add", "x", code=2).exception, ScopeMissing)


def test_a_key_that_is_revoked_is_said_so(
    command: Command, url: str, make_key: Callable[..., str], store_address: str
) -> None:
    key = make_key("ada", "chat")
    command("keys", "revoke", key.split("_")[1], "--database", store_address)
    for wrong in (key, f"{key[:-4]}AAAA", "lt_none"):
        assert isinstance(command("login", url, "--key-stdin", text=wrong, code=2).exception, ServerKeyRefused)
    assert "not logged in" in command("whoami").stdout
