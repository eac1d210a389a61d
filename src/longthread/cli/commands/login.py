"""`longthread login`, `logout` and `whoami`: the server that commands work on."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from longthread.cli import options
from longthread.cli.language import say
from longthread.cli.remote.client import ServerAnswer, ServerClient, work_on_server
from longthread.cli.remote.logins import Logins, ServerLogin, check_key, normalize_address
from longthread.cli.server_choice import named_server
from longthread.cli.terminal import echo, echo_data, print_line
from longthread.errors import InvalidInput, ServerAnswerInvalid
from longthread.settings import login_key

_LARGEST_KEY = 4096
"""Characters of standard input that are read for a key."""


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server, such as https://longthread.example.com.")],
    key_stdin: Annotated[bool, typer.Option("--key-stdin", help="Read the API key from standard input.")] = False,
    insecure: Annotated[
        bool, typer.Option("--insecure-http", help="Allow http://, on which anyone on the way can read the key.")
    ] = False,
) -> None:
    """Log in to a server with an API key; the commands then work on that server.

    The key is one of your account there. It is asked for, unless it is in LONGTHREAD_KEY or --key-stdin is given.
    """
    address = normalize_address(url, insecure=insecure)
    auth = _read_auth(work_on_server(ServerLogin(address, "", ""), lambda client: client.get("/api/info")))
    key = "" if auth["mode"] == "local" else check_key(_find_key(address, from_stdin=key_stdin))
    user = work_on_server(ServerLogin(address, "", key), _read_user)
    logins = Logins()
    place = logins.keep(ServerLogin(address, user["name"], key))
    echo("Logged in to {} as {}.", address, user["name"])
    match place:
        case "keyring":
            echo("The key is in the keyring of this system.")
        case "file":
            echo("The key is in {}, which only you can read.", logins.path)
        case "none":
            echo("This server has no login: it needs no key.")


def logout(
    url: Annotated[str | None, typer.Argument(metavar="[URL]", help="By default the server in use.")] = None,
) -> None:
    """Forget the key of a server; the commands then work on the store of this machine."""
    logins = Logins()
    address = logins.resolve_address(url) if url is not None else logins.current
    if address is None or not logins.forget(address):
        echo("You are not logged in to {}.", address or say("a server"), err=True)
        return
    echo("Logged out of {}. The key stays valid until you revoke it in your account there.", address)


def whoami(as_json: options.AsJson = False) -> None:
    """The server in use, and who you are there."""
    logins, named = Logins(), named_server()
    address = logins.resolve_address(named) if named is not None else logins.current
    if address is None:
        if as_json:
            print_line({"server": None})
        else:
            echo("You are not logged in to a server: commands work on the store of this machine.")
        return
    user = work_on_server(logins.find(address, named=named is not None), _read_user)
    if as_json:
        print_line({"server": address, **user})
        return
    for label, value in (("server", address), ("user", user["name"]), ("role", user["role"])):
        if value:
            echo_data(f"{say(label)}\t{value}")
    if user["groups"]:
        echo_data(f"{say('groups')}\t{', '.join(user['groups'])}")


def _find_key(address: str, *, from_stdin: bool) -> str:
    """The key: from standard input, from LONGTHREAD_KEY, or typed in. Raises InvalidInput: there is no terminal."""
    if from_stdin:
        return sys.stdin.readline(_LARGEST_KEY)
    if (given := login_key()) is not None:
        return given.get_secret_value()
    if not sys.stdin.isatty():
        raise InvalidInput(reason="There is no terminal to ask for the key. Give --key-stdin, or set LONGTHREAD_KEY.")
    echo("Make an API key in your account: {}", f"{address}/settings/account", err=True)
    return str(typer.prompt(say("API key"), hide_input=True, err=True))


def _read_auth(info: ServerAnswer) -> ServerAnswer:
    """How a server knows its users. One of before logins has none."""
    auth = info.get("auth")
    return auth if isinstance(auth, dict) and "mode" in auth else {"mode": "local"}


async def _read_user(client: ServerClient) -> dict[str, Any]:
    """Who the key is of, as the server says."""
    info = await client.get("/api/info")
    if _read_auth(info)["mode"] == "local":
        if not isinstance(info.get("user"), str):
            raise ServerAnswerInvalid(server=client.login.address, reason="it does not say who asks.")
        return {"name": info["user"], "role": None, "groups": []}
    found = await client.get("/api/me")
    return {"name": str(found.get("name")), "role": found.get("role"), "groups": found.get("groups") or []}
