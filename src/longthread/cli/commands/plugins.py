"""`longthread plugins list`: what is installed besides Longthread itself."""

from __future__ import annotations

from collections.abc import Mapping

import typer
from rich.table import Table
from rich.text import Text

from longthread import __version__
from longthread.cli import options
from longthread.cli.language import say, translate
from longthread.cli.terminal import Console, print_line
from longthread.plugins import CORE, OfferedPlaces, OfferKind, Plugin
from longthread.plugins import plugins as find_plugins

_NAMED = 5
"""Names of a kind that are listed; of more, their number is."""

plugins = typer.Typer(help="List the installed plugins.", no_args_is_help=True)


@plugins.callback()
def _group() -> None:
    """A group, although it has one command."""


@plugins.command("list")
def list_(as_json: options.AsJson = False) -> None:
    """The plugins and what each offers, Longthread's own offers first, or why one is left out."""
    known = find_plugins()
    rows = [Plugin(CORE, CORE, __version__, known.core), *known.installed]
    if as_json:
        for each in rows:
            print_line(_to_json(each))
    else:
        _print_table(rows)


def _to_json(plugin: Plugin) -> dict[str, object]:
    about = {"plugin": plugin.name, "package": plugin.package, "version": plugin.version}
    offers = {kind: sorted(places) for kind, places in plugin.offers.items()}
    return about | {"offers": offers, "failure": plugin.failure or None}


def _print_table(rows: list[Plugin]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("plugin", "package", "version", "offers"):
        table.add_column(say(column), no_wrap=column != "offers")
    for each in rows:
        failure = say("left out: {}", translate(each.failure)) if each.failure else ""
        offers = Text(failure, style="red") if failure else Text(_describe_offers(each.offers))
        table.add_row(Text(each.name), Text(each.package), Text(each.version), offers)
    Console().print(table)


def _describe_offers(offers: Mapping[OfferKind, OfferedPlaces]) -> str:
    parts = []
    for kind, places in offers.items():
        names = say(", ").join(sorted(places)) if len(places) <= _NAMED else str(len(places))
        parts.append(say("{} {}", say(kind), names))
    return say("; ").join(parts)
