"""`longthread prices …`: what models cost, in a file that a person edits."""

from __future__ import annotations

import math
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from longthread.access.prices import load_prices, prices_path, remove_price, set_price
from longthread.cli import options
from longthread.cli.language import say
from longthread.cli.terminal import Console, echo, echo_data, join_by_tabs, print_line
from longthread.errors import InvalidInput
from longthread.settings import Price, Settings

prices = typer.Typer(help="Show and set what models cost.", no_args_is_help=True)

ModelName = Annotated[str, typer.Argument(help="The model as its runs have it, such as openai:gpt-5.")]


@prices.command("list")
def list_(as_json: options.AsJson = False) -> None:
    """The prices of a million tokens, those of LONGTHREAD_PRICES too, which come before the file's."""
    settings = Settings.load()
    found = sorted(load_prices(settings).values(), key=lambda price: price.model)
    if as_json:
        for price in found:
            print_line(price.model_dump() | {"currency": settings.currency})
        return
    rows = [(each.model, *map(_format_price, (each.input, each.output, each.cached))) for each in found]
    console = Console()
    if not console.is_terminal:
        for row in rows:
            echo_data(join_by_tabs(row))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column(say("model"))
    for column in ("input", "output", "cached"):
        table.add_column(f"{say(column)} ({settings.currency})", justify="right")
    for row in rows:
        table.add_row(*map(escape, row))
    nothing = say("No prices are set. Try: longthread prices set openai:gpt-5 --input 1.25 --output 10")
    console.print(table if found else f"[dim]{nothing}[/dim]")


@prices.command()
def path() -> None:
    """Print where the file of prices is, for an editor: `$EDITOR "$(longthread prices path)"`."""
    echo_data(str(prices_path(Settings.load())))


@prices.command("set")
def set_(
    model: ModelName,
    input_: Annotated[float, typer.Option("--input", min=0, help="The price of a million tokens that it reads.")],
    output: Annotated[float, typer.Option("--output", min=0, help="The price of a million tokens that it writes.")],
    cached: Annotated[
        float | None,
        typer.Option("--cached", min=0, help="The price of those that its provider had in its cache, if another."),
    ] = None,
) -> None:
    """Set what a model costs, in LONGTHREAD_CURRENCY. A server uses it at once, for calls from now on."""
    settings = Settings.load()
    if not model.strip():
        raise InvalidInput(reason="The name of the model is empty.")
    if not all(map(math.isfinite, (input_, output, cached or 0))):
        raise InvalidInput(reason="A price is a number from 0 on.")
    set_price(prices_path(settings), Price(model=model.strip(), input=input_, output=output, cached=cached))
    echo("Set: the price of {} in {}.", model.strip(), prices_path(settings))


@prices.command()
def remove(model: ModelName) -> None:
    """Take a model's price out of the file."""
    file = prices_path(Settings.load())
    if not remove_price(file, model):
        raise InvalidInput(reason=f"{file} has no price of {model}.")
    echo("Removed: the price of {}.", model)


def _format_price(amount: float | None) -> str:
    return "" if amount is None else f"{amount:,.6g}"
