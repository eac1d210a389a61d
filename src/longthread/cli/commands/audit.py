"""`longthread audit`: the audit log of a server whose users log in, for people who can read its store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from longthread.access import audit as audit_log
from longthread.access import users
from longthread.access.audit import ACTIONS, MOST_ROWS, PAGE_ROWS, AuditFilter, AuditRow
from longthread.cli import options
from longthread.cli.commands.users import work_on_access
from longthread.cli.language import say
from longthread.cli.options import moment
from longthread.cli.terminal import Console, echo_data, join_by_tabs, print_line
from longthread.errors import InvalidInput
from longthread.settings import Settings
from longthread.store.driver import Transaction


def audit(
    user: Annotated[str | None, typer.Option("--user", "-u", help="Only what this user did.")] = None,
    action: Annotated[str | None, typer.Option("--action", help="Only this, such as login or key.make.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="From this date or time (ISO 8601) on, or an age such as 7d.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST_ROWS, help="How many rows.")] = PAGE_ROWS,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Show what users and administrators did, the newest first: logins, keys, rights, shares, exports, deletions."""
    if action is not None and action not in ACTIONS:
        raise InvalidInput(reason=f"{action!r} is none of the actions: {', '.join(ACTIONS)}.")
    after = moment(since, "--since", ahead=False) if since is not None else None

    async def read(tx: Transaction, _: Settings) -> list[AuditRow]:
        actor = (await users.find_user_by_name(tx, user)).id if user is not None else ""
        return await audit_log.list_rows(tx, AuditFilter(actor, action or "", after), limit=limit)

    found = work_on_access(database, read)
    if as_json:
        for row in found:
            print_line(row.to_json())
        return
    _print_rows([_describe(row) for row in found])


def _describe(row: AuditRow) -> tuple[str, ...]:
    detail = " ".join(f"{name}={value}" for name, value in row.detail.items())
    action = row.action if row.outcome == "done" else f"{row.action} ({say(row.outcome)})"
    who = row.actor_name or row.actor or row.via
    return (f"{row.at.astimezone():%Y-%m-%d %H:%M:%S}", who, action, row.object, row.address, detail)


def _print_rows(rows: Sequence[Sequence[str]]) -> None:
    console = Console()
    if not console.is_terminal:
        for row in rows:
            echo_data(join_by_tabs(row))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("at", "user", "action", "object", "address", "detail"):
        table.add_column(say(column))
    for row in rows:
        table.add_row(*map(escape, row))
    nothing = say("Nothing is noted: a server writes this log where its users log in.")
    console.print(table if rows else f"[dim]{nothing}[/dim]")
