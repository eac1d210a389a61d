"""`longthread keys …`: API keys, by which programs use a server as one of its users."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar, get_args

import typer
from rich.markup import escape
from rich.table import Table

from longthread.access import audit
from longthread.access import keys as api_keys
from longthread.access.keys import ApiKey, NewKey
from longthread.access.principal import SCOPES
from longthread.access.users import Period, SpendingLimit, SpendingUnit, User, find_user, find_user_by_name
from longthread.cli import options
from longthread.cli.language import say
from longthread.cli.options import moment
from longthread.cli.terminal import Console, echo, echo_data, join_by_tabs, print_line
from longthread.cli.whole_store import run
from longthread.errors import InvalidInput
from longthread.settings import Settings
from longthread.store.driver import Transaction
from longthread.store.open import open_store

T = TypeVar("T")
UserOption = Annotated[str | None, typer.Option("--user", "-u", help="Whose; by default the first user's.")]
_BUDGET = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s*(tokens?)?\s*/\s*(day|week|month)")

keys = typer.Typer(help="Make, list and revoke API keys of a server's users.", no_args_is_help=True)


@keys.command()
def add(
    name: Annotated[str, typer.Argument(help="What the key is for, such as ci.")],
    user: UserOption = None,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help=f"What it may do, several times: {', '.join(SCOPES)}. By default chat."),
    ] = None,
    agent: Annotated[list[str] | None, typer.Option("--agent", help="Only this agent; several times.")] = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="Only this model; several times.")] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="Only this source; several times.")] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="WHEN", help="A date or time (ISO 8601), or an age such as 90d.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT/PERIOD", help="What it may spend in a day, week or month: 20/month, or 100000tokens/day."
        ),
    ] = None,
    requests: Annotated[int | None, typer.Option("--requests", min=1, help="Requests a minute.")] = None,
    parallel: Annotated[int | None, typer.Option("--parallel", min=1, help="Runs at once.")] = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Make an API key, and print it: it can never be read again."""
    new = NewKey(
        name,
        scope or ["chat"],
        agent or None,
        model or None,
        source or None,
        moment(expires, "--expires", ahead=True) if expires else None,
        read_budget(budget) if budget else None,
        requests,
        parallel,
    )
    api_keys.validate_key(new)

    async def make(tx: Transaction, settings: Settings) -> tuple[ApiKey, str]:
        return await api_keys.create_key(tx, await _find_owner(tx, user, settings), new)

    key, text = _work_on_keys(database, make, writes=True)
    if as_json:
        print_line(key.to_json() | {"key": text})
        return
    echo_data(text)
    echo("This is the key {} of {}. Keep it: it is not shown again.", key.name, key.user_name, err=True)


@keys.command("list")
def list_(
    user: Annotated[str | None, typer.Option("--user", "-u", help="Whose; by default everyone's.")] = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """The keys that are not revoked, without their secrets."""

    async def read(tx: Transaction, settings: Settings) -> list[ApiKey]:
        owner = await _find_owner(tx, user, settings) if user is not None else None
        return await api_keys.list_keys(tx, owner.id if owner is not None else None)

    found = _work_on_keys(database, read)
    if as_json:
        for key in found:
            print_line(key.to_json())
        return
    rows = [(key.id, key.name, key.user_name, ", ".join(sorted(key.limits.scopes)), *_describe(key)) for key in found]
    console = Console()
    if not console.is_terminal:
        for row in rows:
            echo_data(join_by_tabs(row))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("id", "name", "user", "scopes", "budget", "expires", "used"):
        table.add_column(say(column))
    for row in rows:
        table.add_row(*map(escape, row))
    nothing = say("There are no keys. Try: longthread keys add …")
    console.print(table if found else f"[dim]{nothing}[/dim]")


@keys.command()
def revoke(
    key: Annotated[str, typer.Argument(help="The key's id, as `longthread keys list` shows it.")],
    database: options.Database = None,
) -> None:
    """End a key. Servers refuse it within seconds."""

    async def end(tx: Transaction, _: Settings) -> ApiKey:
        return await api_keys.revoke_key(tx, key)

    revoked = _work_on_keys(database, end, writes=True)
    echo("Revoked: the key {} of {}.", revoked.name, revoked.user_name)


def read_budget(text: str) -> SpendingLimit:
    """Return what may be spent, from a text such as `20/month` or `100000tokens/day`. Raises InvalidInput."""
    match = _BUDGET.fullmatch(text.strip())
    if match is None:
        reason = (
            f"The budget is {text!r}; allowed is an amount of money or of tokens and a period, such as 20/month or "
        )
        raise InvalidInput(reason=f"{reason}100000tokens/day.")
    period: Period = next(each for each in get_args(Period) if each == match[3])
    unit: SpendingUnit = "tokens" if match[2] else "money"
    return SpendingLimit(float(match[1]), unit, period)


def _describe(key: ApiKey) -> tuple[str, str, str]:
    """Return a key's budget, when it expires and when it was used last, for people."""
    budget = key.budget
    unit = "tokens" if budget is not None and budget.unit == "tokens" else ""
    return (
        f"{budget.amount:,g}{unit}/{budget.period}" if budget is not None else "",
        f"{key.expires_at.astimezone():%Y-%m-%d %H:%M}" if key.expires_at is not None else "",
        f"{key.seen_at.astimezone():%Y-%m-%d %H:%M}" if key.seen_at is not None else "",
    )


async def _find_owner(tx: Transaction, name: str | None, settings: Settings) -> User:
    return await find_user(tx, settings.user) if name is None else await find_user_by_name(tx, name)


def _work_on_keys(
    database: str | None, work: Callable[[Transaction, Settings], Awaitable[T]], *, writes: bool = False
) -> T:
    settings = Settings.load(database=database)

    async def open_and_work() -> T:
        opening = open_store(settings.database, creates=False, read_only=settings.read_only)
        async with opening as store, store.writing() if writes else store.reading() as tx:
            with audit.acting(audit.BY_COMMAND):
                return await work(tx, settings)

    return run(open_and_work())
