"""`longthread users …` and `longthread groups …`: who may use a server, for people who can read its store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer
from rich.markup import escape
from rich.table import Table

from longthread.access import audit, sessions, users
from longthread.access.personal_export import export_person
from longthread.access.principal import UserRole
from longthread.access.users import Group, User
from longthread.cli import options
from longthread.cli.commands.keys import read_budget
from longthread.cli.language import say
from longthread.cli.terminal import Console, confirm, echo, echo_data, echo_made, join_by_tabs, print_line
from longthread.cli.whole_store import count_noun, existing, output, run
from longthread.errors import InvalidInput
from longthread.settings import Settings
from longthread.store.driver import Transaction
from longthread.store.open import open_store

if TYPE_CHECKING:
    from longthread.memory.forget import Forgotten

T = TypeVar("T")
_UserName = Annotated[str, typer.Argument(help="The user's name.")]
_GroupName = Annotated[str, typer.Argument(help="The group's name.")]

users_app = typer.Typer(help="Add, list and change the users of a server.", no_args_is_help=True)
groups_app = typer.Typer(help="Make groups of users, to whom things are granted.", no_args_is_help=True)


@users_app.command()
def add(
    name: _UserName,
    admin: Annotated[bool, typer.Option("--admin", help="An administrator.")] = False,
    builder: Annotated[bool, typer.Option("--builder", help="Who may make agents, tools and sources.")] = False,
    display: Annotated[str, typer.Option("--display", help="How the person is called on the page.")] = "",
    email: Annotated[str | None, typer.Option("--email", help="The person's address.")] = None,
    group: Annotated[list[str] | None, typer.Option("--group", "-g", help="A group; several times.")] = None,
    adopt: Annotated[
        str | None,
        typer.Option("--adopt", metavar="USER", help="Take over the conversations of this user: default is yours."),
    ] = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Add a user, and print a link by which the person sets a password, once, within a day."""
    if admin and builder:
        raise InvalidInput(reason="--admin and --builder are both given. An administrator may do all: leave out one.")
    role: UserRole = "admin" if admin else "builder" if builder else "member"

    async def create(tx: Transaction, settings: Settings) -> tuple[User, str]:
        groups = [await users.find_group(tx, each) for each in group or ()]
        user = await users.create_user(
            tx, name, role=role, status="pending", display=display, email=email, user_id=adopt
        )
        for each in groups:
            await users.add_member(tx, each, user)
        await audit.note(tx, "user.add", user.id, role=user.role)
        return user, _make_address(settings, await sessions.create_link(tx, "invitation", user))

    user, address = work_on_access(database, create, writes=True)
    if as_json:
        print_line(_to_json(user, group or ()) | {"link": address})
        return
    echo_data(address)
    echo("{} opens this link to set a password. It works once, within a day.", user.name, err=True)


@users_app.command("list")
def list_users(as_json: options.AsJson = False, database: options.Database = None) -> None:
    """The users, by name."""

    async def read(tx: Transaction, _: Settings) -> list[tuple[User, list[Group]]]:
        return [(each, await users.groups_of(tx, each.id)) for each in await users.list_users(tx)]

    found = work_on_access(database, read)
    if as_json:
        for user, groups in found:
            print_line(_to_json(user, [each.name for each in groups]))
        return
    rows = [
        (user.name, user.role, user.status, ", ".join(each.name for each in groups), _describe_time(user))
        for user, groups in found
    ]
    print_table(("user", "role", "status", "groups", "seen"), rows, "There are no users. Try: longthread users add …")


@users_app.command()
def role(
    name: _UserName,
    role: Annotated[str, typer.Argument(help="What the user may do.", metavar="admin|builder|member")],
    database: options.Database = None,
) -> None:
    """Change a user's role. The user's logins end."""
    chosen = next((each for each in get_args(UserRole) if each == role), None)
    if chosen is None:
        raise InvalidInput(reason=f"{role!r} is no role: give admin, builder or member.")
    user = _change_user(database, name, ends_logins=True, role=chosen)
    echo("{} has the role {}.", user.name, user.role)


@users_app.command()
def budget(
    name: _UserName,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT/PERIOD", help="20/month, 100000tokens/day, or none.")],
    database: options.Database = None,
) -> None:
    """Set what a user may spend in a day, week or month."""
    limit = None if amount == "none" else read_budget(amount)
    user = _change_user(database, name, budget=limit)
    echo("{} may spend {}.", user.name, amount if limit is not None else say("without a limit"))


@users_app.command()
def disable(name: _UserName, database: options.Database = None) -> None:
    """Shut a user out: logins and keys stop working within seconds, and nothing is deleted."""
    echo("{} is shut out.", _change_user(database, name, ends_logins=True, status="disabled").name)


@users_app.command()
def enable(name: _UserName, database: options.Database = None) -> None:
    """Let a user in again who was shut out, or who waits for an administrator."""
    echo("{} may log in.", _change_user(database, name, status="active").name)


@users_app.command()
def reset(name: _UserName, database: options.Database = None) -> None:
    """Print a link by which a user sets a new password, once, within a day. Earlier links stop working."""

    async def make(tx: Transaction, settings: Settings) -> tuple[User, str]:
        user = await users.find_user_by_name(tx, name)
        await audit.note(tx, "link.make", user.id, kind="reset")
        return user, _make_address(settings, await sessions.create_link(tx, "reset", user))

    user, address = work_on_access(database, make, writes=True)
    echo_data(address)
    echo("{} opens this link to set a password. It works once, within a day.", user.name, err=True)


@users_app.command("sessions")
def list_sessions(
    name: _UserName,
    end: Annotated[bool, typer.Option("--end", help="End them all.")] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Where a user is logged in."""

    async def look(tx: Transaction, _: Settings) -> list[sessions.LoginSession]:
        user = await users.find_user_by_name(tx, name)
        found = await sessions.list_sessions(tx, user.id)
        if end:
            await sessions.end_sessions(tx, user.id)
            await audit.note(tx, "session.end", user.id)
        return found

    found = work_on_access(database, look, writes=end)
    if as_json:
        for each in found:
            times = {"made_at": each.made_at.isoformat(), "seen_at": each.seen_at.isoformat()}
            print_line({**times, "address": each.address, "agent": each.agent, "via": each.via})
        return
    rows = [(f"{each.seen_at.astimezone():%Y-%m-%d %H:%M}", each.address, each.agent) for each in found]
    print_table(("seen", "address", "browser"), rows, "There are no logins.")


@users_app.command("export")
def export_user(
    name: _UserName,
    to: Annotated[Path, typer.Option("--to", "-o", metavar="FILE", help="A zip file.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE when it is there.")] = False,
    database: options.Database = None,
) -> None:
    """Write all that is kept of a user to a zip file: conversations, memories, and what is known of the account."""
    settings = Settings.load(database=database)

    async def write() -> int:
        async with existing(settings) as store:
            with output(to, settings.database, force=force) as file:
                async with store.reading() as tx:
                    user = await users.find_user_by_name(tx, name)
                    count = await export_person(tx, user.id, file)
            if not settings.read_only:
                with audit.acting(audit.BY_COMMAND):
                    await audit.note_alone(store, "person.export", user.id)
            return count

    count = run(write())
    echo("{} exported to {}.", count_noun(count, "conversation"), to, err=True)


@users_app.command()
def forget(
    name: _UserName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Delete a user with all that is kept of the user, and write the store's files anew without it.

    It cannot be undone. Projects, definitions and sources stay for the others.
    """
    # Here and not above: they take long to load, and the other commands need none of them.
    from longthread.runs.services.erasure import erase_person
    from longthread.tools.uploads import Uploads

    settings = Settings.load(database=database)
    if not yes:
        confirm("Forget the user {} with all conversations and memories?", name)

    async def erase() -> Forgotten:
        async with existing(settings) as store:
            async with store.reading() as tx:
                user = await users.find_user_by_name(tx, name)
            with audit.acting(audit.BY_COMMAND):
                return await erase_person(store, Uploads.of(settings), user.id, anew=True)

    gone = run(erase())
    if as_json:
        print_line({"forgotten": True, "threads": gone.threads, "rows": gone.rows, "problems": gone.problems})
        return
    echo("Forgotten: the user {} with {}.", name, count_noun(gone.threads, "conversation"))
    for problem in gone.problems:
        echo_made(problem)


@groups_app.command("add")
def add_group(
    name: _GroupName,
    user: Annotated[list[str] | None, typer.Option("--user", "-u", help="A member; several times.")] = None,
    database: options.Database = None,
) -> None:
    """Make a group, or add members to one."""

    async def make(tx: Transaction, _: Settings) -> Group:
        known = {group.name: group for group, _ in await users.list_groups(tx)}
        group = known.get(users.normalize_name(name))
        if group is None:
            group = await users.create_group(tx, name)
            await audit.note(tx, "group.add", group.id)
        for each in user or ():
            member = await users.find_user_by_name(tx, each)
            await users.add_member(tx, group, member)
            await audit.note(tx, "member.add", member.id, group=group.id)
        return group

    group = work_on_access(database, make, writes=True)
    echo("The group {} is there.", group.name)


@groups_app.command("list")
def list_groups(as_json: options.AsJson = False, database: options.Database = None) -> None:
    """The groups, with their members."""

    async def read(tx: Transaction, _: Settings) -> list[tuple[Group, list[str]]]:
        every = [group for group, _ in await users.list_groups(tx)]
        return [(group, [each.name for each in await users.list_members(tx, group)]) for group in every]

    found = work_on_access(database, read)
    if as_json:
        for group, members in found:
            print_line({"id": group.id, "name": group.name, "origin": group.origin, "members": members})
        return
    rows = [(group.name, group.origin, ", ".join(members)) for group, members in found]
    print_table(("group", "from", "members"), rows, "There are no groups. Try: longthread groups add …")


@groups_app.command("remove")
def remove_group(
    name: _GroupName,
    user: Annotated[list[str] | None, typer.Option("--user", "-u", help="Only these members.")] = None,
    database: options.Database = None,
) -> None:
    """Delete a group with what was granted to it; with --user, only take members out."""

    async def remove(tx: Transaction, _: Settings) -> Group:
        group = await users.find_group(tx, name)
        for each in user or ():
            member = await users.find_user_by_name(tx, each)
            await users.remove_member(tx, group, member)
            await audit.note(tx, "member.remove", member.id, group=group.id)
        if not user:
            await users.delete_group(tx, group)
            await audit.note(tx, "group.delete", group.id)
        return group

    group = work_on_access(database, remove, writes=True)
    echo("Taken out of {}: {}." if user else "The group {} is deleted.", group.name, ", ".join(user or ()))


def work_on_access(
    database: str | None, work: Callable[[Transaction, Settings], Awaitable[T]], *, writes: bool = False
) -> T:
    """Do something with the users of a store, which is made if there is none."""
    settings = Settings.load(database=database)

    async def open_and_work() -> T:
        opening = open_store(settings.database, creates=writes, read_only=settings.read_only)
        async with opening as store, store.writing() if writes else store.reading() as tx:
            with audit.acting(audit.BY_COMMAND):
                return await work(tx, settings)

    return run(open_and_work())


def _change_user(database: str | None, name: str, *, ends_logins: bool = False, **changes: Any) -> User:
    async def change(tx: Transaction, _: Settings) -> User:
        user = await users.update_user(tx, await users.find_user_by_name(tx, name), **changes)
        if ends_logins:
            await sessions.end_sessions(tx, user.id)
        await audit.note(tx, "user.change", user.id, changed=" ".join(sorted(changes)), role=user.role)
        return user

    return work_on_access(database, change, writes=True)


def _make_address(settings: Settings, token: str) -> str:
    """Return the address of a link, under the server's public one."""
    return f"{settings.public_url or f'http://localhost:{settings.port}'}{sessions.link_path(token)}"


def _to_json(user: User, groups: Iterable[str]) -> dict[str, Any]:
    seen = user.seen_at.isoformat() if user.seen_at is not None else None
    about = {"id": user.id, "name": user.name, "role": user.role, "status": user.status, "groups": list(groups)}
    return {**about, "seen_at": seen}


def _describe_time(user: User) -> str:
    return f"{user.seen_at.astimezone():%Y-%m-%d %H:%M}" if user.seen_at is not None else ""


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """Print rows as a table for people, or by tabs for programs; `nothing` says that there are none."""
    console = Console()
    if not console.is_terminal:
        for row in rows:
            echo_data(join_by_tabs(row))
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(say(column))
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table if rows else f"[dim]{say(nothing)}[/dim]")
