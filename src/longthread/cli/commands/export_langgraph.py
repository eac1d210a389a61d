"""`longthread export langgraph`: threads and items for LangGraph's own savers and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from longthread.cli import options
from longthread.cli.language import say, translate
from longthread.cli.progress import counted, shown
from longthread.cli.screen import echo, echo_data
from longthread.cli.terminal import print_line
from longthread.cli.whole_store import existing, run
from longthread.errors import ExportIncomplete
from longthread.settings import Settings
from longthread.store.imports.foreign import shown_address

if TYPE_CHECKING:
    from longthread.langgraph.exports.all_users import ExportReport

export = typer.Typer(
    name="export", help="Write to the databases of other programs.", no_args_is_help=True, rich_markup_mode="rich"
)


@export.callback()
def _root() -> None:
    """Write to the databases of other programs."""


@export.command("langgraph")
def langgraph(
    to: Annotated[
        str, typer.Option("--to", metavar="ADDRESS", help="sqlite:///FILE or a postgresql:// address; made if needed.")
    ],
    user: Annotated[str | None, typer.Option("--user", help="Only the threads and items of this user.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Write threads and items anew that are there and differ.")
    ] = False,
    serde: options.Serde = None,
    allow_pickle: options.AllowPickle = False,
    aes: options.Aes = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """Write LangGraph threads and items to the database of a SqliteSaver or PostgresSaver, which goes on with them."""
    # Here and not above: LangGraph takes seconds to load, and help needs none of it.
    from longthread.langgraph.exports.all_users import export_users
    from longthread.langgraph.imports.serializers import serializer

    settings = Settings.load(database=database, read_only=read_only)
    chosen = serializer(at=serde, pickle=allow_pickle, aes=aes)

    async def work() -> ExportReport:
        async with existing(settings) as store:
            with shown("exporting") as progress:
                return await export_users(store, to, progress, user=user, replaces=replace, serde=chosen)

    report = run(work())
    where = shown_address(to.removeprefix("sqlite:///"))
    if as_json:
        print_line({"to": where, "written": dict(report.written), "notes": report.notes, "left": report.left})
    else:
        _show(where, report)
    if report.left:
        raise ExportIncomplete(where=where, reason=report.left[0], left=report.left)


def _show(where: str, report: ExportReport) -> None:
    for name, number in report.written.items():
        echo_data(f"  {counted(number, name[:-1])} {say('in')} {where}")
    for head, lines in (("Notes:", report.notes), ("Not written:", report.left)):
        if lines:
            echo(head)
        for line in lines:
            echo_data(f"  - {translate(line)}")
