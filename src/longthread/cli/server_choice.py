"""Which server a command works on: one that `--server` names, else the one that the user is logged in to.

A command works on a store where `--local`, `--database` or a variable of the store says so, and without a login.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longthread.errors import InvalidInput, NotOnServer, OptionNotOnServer

if TYPE_CHECKING:
    from longthread.cli.remote.logins import ServerLogin

_server: ContextVar[ServerLogin | None] = ContextVar("server", default=None)
_named: ContextVar[str | None] = ContextVar("named", default=None)
"""The address that --server names."""
_local: ContextVar[bool] = ContextVar("local", default=False)

SERVER, LOCAL = "--server", "--local"
_NOT_ON_SERVER = {"read_only": "--read-only", "user": "--user"}
"""Options of a store, by their parameters."""


def _note_server(ctx: typer.Context, given: str | None) -> str | None:
    if given is not None or ctx.parent is None:
        _named.set(given)
    return given


def _note_local(ctx: typer.Context, given: bool) -> bool:
    if given or ctx.parent is None:
        _local.set(given)
    return given


NamedServer = Annotated[
    str | None,
    typer.Option(
        SERVER,
        metavar="URL",
        callback=_note_server,
        help="Work on this server, with its login or the key in LONGTHREAD_KEY.",
    ),
]
LocalStore = Annotated[
    bool, typer.Option(LOCAL, callback=_note_local, help="Work on the store of this machine, not on a server.")
]


def chosen_server() -> ServerLogin | None:
    """The server that the command works on; None: it works on a store."""
    return _server.get()


def named_server() -> str | None:
    """The address that the command line names."""
    return _named.get()


def work_where_chosen(command: Any, find_login: Callable[[Any], ServerLogin | None]) -> None:
    """Let a command find out, once it has read its options, where it works."""
    invoke = command.invoke

    def find_and_invoke(context: Any) -> Any:
        _server.set(find_login(context))
        return invoke(context)

    command.invoke = find_and_invoke


def find_login(context: Any) -> ServerLogin | None:
    """The login of the server that a command works on; None: it works on a store.

    Raises:
        NotOnServer, OptionNotOnServer: the command, or one of its options, works on a store alone.
        InvalidInput: two places are named.
        NotLoggedIn: the server that is named is not known.
    """
    from longthread.cli.commands import ALWAYS_LOCAL, ON_SERVER

    name, given = _read_name(context), context.params
    named, database = _named.get(), given.get("database") is not None
    if named is not None and (_local.get() or database):
        raise InvalidInput(reason=f"{SERVER} and {LOCAL if _local.get() else '--database'} exclude each other.")
    is_local = _local.get() or database or name.partition(" ")[0] in ALWAYS_LOCAL
    login = None if is_local else _read_login(named)
    if login is None:
        return None
    if name not in ON_SERVER:
        raise NotOnServer(command=name, server=login.address)
    for parameter, option in _NOT_ON_SERVER.items():
        if given.get(parameter):
            raise OptionNotOnServer(option=option)
    _show(login)
    return login


def _read_name(context: Any) -> str:
    names: list[str] = []
    while context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    return " ".join(names)


def _read_login(named: str | None) -> ServerLogin | None:
    # Here and not above: a command of a store that nobody is logged in from needs none of it.
    from longthread.cli.remote.logins import Logins
    from longthread.settings import Settings

    logins = Logins()
    if named is not None:
        return logins.find(logins.resolve_address(named), named=True)
    if logins.current is None or "database" in Settings.load().model_fields_set:
        return None
    return logins.find(logins.current, named=False)


def _show(login: ServerLogin) -> None:
    """Show on a terminal where the command works: programs read nothing that is not theirs."""
    if sys.stderr.isatty():
        from longthread.cli.language import say
        from longthread.cli.terminal import Console

        user = say(" as {}", login.user) if login.user else ""
        Console(stderr=True, soft_wrap=True).print(f"{login.address}{user}", style="dim", markup=False, highlight=False)
