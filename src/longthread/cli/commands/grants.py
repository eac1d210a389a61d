"""`longthread grants …`: what users, groups or everyone may use and change on a server with a login."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer
from rich.markup import escape
from rich.table import Table

from longthread.access import audit
from longthread.access import grants as rights
from longthread.access.grants import Grant, GrantKind, ToKind
from longthread.access.users import find_group, find_user_by_name
from longthread.cli import options
from longthread.cli.language import say
from longthread.cli.terminal import Console, echo, echo_data, join_by_tabs, print_line
from longthread.cli.whole_store import run
from longthread.errors import GrantNotFound, InvalidInput
from longthread.runs.rights import default_items, find_item, name_item
from longthread.settings import Settings
from longthread.store import catalog
from longthread.store.driver import Transaction
from longthread.store.open import open_store
from longthread.tools.catalog.names import Names

T = TypeVar("T")
KindArgument = Annotated[GrantKind, typer.Argument(help="The kind.")]
ItemArgument = Annotated[
    str,
    typer.Argument(help="The name or id of a definition; a model, or openai:* for all of a provider; or demo."),
]
ToUser = Annotated[str | None, typer.Option("--user", "-u", help="To this user.")]
ToGroup = Annotated[str | None, typer.Option("--group", "-g", help="To the members of this group.")]
ToEveryone = Annotated[bool, typer.Option("--everyone", help="To everyone.")]

grants = typer.Typer(help="Say what users and groups may use and change.", no_args_is_help=True)


@grants.command()
def add(
    kind: KindArgument,
    item: ItemArgument,
    user: ToUser = None,
    group: ToGroup = None,
    everyone: ToEveryone = False,
    edit: Annotated[bool, typer.Option("--edit", help="Builders among them may also change it.")] = False,
    database: options.Database = None,
) -> None:
    """Grant a right to a user, a group or everyone."""

    async def work(tx: Transaction, settings: Settings, names: Names) -> str:
        defaults = default_items(settings)
        found = find_item(names, kind, item, defaults)
        to = await _find_target(tx, user, group, everyone=everyone)
        await rights.add_grant(tx, kind, found, *to, "edit" if edit else "use", by=settings.user)
        return found

    _work_on_grants(database, work, writes=True)
    echo("Granted: the {} {}.", kind, item)


@grants.command("list")
def list_(
    kind: Annotated[GrantKind | None, typer.Option("--kind", help="Only of this kind.")] = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """All grants, with what everyone may use by default."""

    async def read(tx: Transaction, settings: Settings, names: Names) -> list[tuple[str, Grant]]:
        found = await rights.list_grants(tx, default_items(settings), kind=kind)
        return [(name_item(names, each), each) for each in found]

    found = _work_on_grants(database, read)
    if as_json:
        for name, each in found:
            print_line(each.to_json() | {"item_name": name})
        return
    rows = [(each.kind, name, each.to_name or each.to_id or each.to_kind, each.may) for name, each in found]
    console = Console()
    if not console.is_terminal:
        for row in rows:
            echo_data(join_by_tabs(row))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("kind", "name", "to", "right"):
        table.add_column(say(column))
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


@grants.command()
def remove(
    kind: KindArgument,
    item: ItemArgument,
    user: ToUser = None,
    group: ToGroup = None,
    everyone: ToEveryone = False,
    database: options.Database = None,
) -> None:
    """Take a right back; from everyone also what is granted by default."""

    async def work(tx: Transaction, settings: Settings, names: Names) -> None:
        defaults = default_items(settings)
        found = find_item(names, kind, item, defaults)
        to = await _find_target(tx, user, group, everyone=everyone)
        if not await rights.remove_grant(tx, kind, found, *to, defaults=defaults, by=settings.user):
            raise GrantNotFound

    _work_on_grants(database, work, writes=True)
    echo("Taken back: the {} {}.", kind, item)


async def _find_target(tx: Transaction, user: str | None, group: str | None, *, everyone: bool) -> tuple[ToKind, str]:
    """Return to whom a grant is. Raises UserNotFound, GroupNotFound; InvalidInput: they name none, or several."""
    if [user is not None, group is not None, everyone].count(True) != 1:
        raise InvalidInput(reason="Say to whom: give one of --user NAME, --group NAME and --everyone.")
    if user is not None:
        return "user", (await find_user_by_name(tx, user)).id
    if group is not None:
        return "group", (await find_group(tx, group)).id
    return "everyone", ""


def _work_on_grants(
    database: str | None, work: Callable[[Transaction, Settings, Names], Awaitable[T]], *, writes: bool = False
) -> T:
    """Do something in one transaction of the store that the options name."""
    settings = Settings.load(database=database)

    async def open_and_work() -> T:
        opening = open_store(settings.database, creates=False, read_only=settings.read_only)
        async with opening as store, store.writing() if writes else store.reading() as tx:
            names = Names(each.definition for each in await catalog.definitions(tx))
            with audit.acting(audit.BY_COMMAND):
                return await work(tx, settings, names)

    return run(open_and_work())
