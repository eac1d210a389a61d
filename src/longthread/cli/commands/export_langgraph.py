"""`longthread export langgraph`: threads and items for LangGraph's own savers and stores."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from longthread.cli import options
from longthread.cli.progress import counted, shown
from longthread.cli.screen import echo
from longthread.cli.terminal import print_line
from longthread.cli.whole_store import existing, run
from longthread.errors import ExportIncomplete
from longthread.settings import Settings
from longthread.store import checkpoints
from longthread.store.imports.foreign import shown_address

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

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
    from longthread.langgraph.imports.serializers import serializer

    settings = Settings.load(database=database, read_only=read_only)
    chosen = serializer(at=serde, pickle=allow_pickle, aes=aes)
    where = shown_address(to.removeprefix("sqlite:///"))
    numbers, notes, left = run(_export(settings, to, user, replace, chosen))
    if as_json:
        print_line({"to": where, "written": dict(numbers), "notes": notes, "left": left})
    else:
        _show(where, numbers, notes, left)
    if left:
        raise ExportIncomplete(where=where, reason=left[0], left=left)


async def _export(
    settings: Settings, to: str, user: str | None, replaces: bool, serde: SerializerProtocol | None
) -> tuple[Counter[str], list[str], list[str]]:
    """Export each user's; return what is there now, by kind, what is to be said of it, and what is not there."""
    # Here and not above: LangGraph takes seconds to load, and help needs none of it.
    from longthread.langgraph.exports.database import export_langgraph
    from longthread.langgraph.imports.checkpoints import CheckpointProgress
    from longthread.langgraph.imports.serializers import reader_of, without_encryption
    from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver

    numbers, threads, notes, left = Counter[str](), set[str](), list[str](), list[str]()
    reading, writing = reader_of(without_encryption(serde))[0], reader_of(serde)[0]
    async with existing(settings) as store:
        async with store.reading() as tx:
            users = [user] if user is not None else await checkpoints.users(tx)
        with shown("exporting") as progress:

            def tell(at: CheckpointProgress) -> None:
                progress(at.done, at.total, at.thread_id)
                numbers[f"{at.kind}s"] += 1
                if at.kind == "checkpoint":
                    threads.add(at.thread_id)

            for each in users or [settings.user]:
                saver = AsyncLongthreadSaver(store, user_id=each, serde=reading)
                try:
                    done = await export_langgraph(to, saver, serde=writing, replaces=replaces, progress=tell)
                except ExportIncomplete as error:
                    left += error.left
                else:
                    notes += done.notes
        if len(users) > 1:
            notes.append(f"the threads of {len(users)} users are in one database now, which knows no users")
    numbers["threads"] = len(threads)
    return numbers, notes, left


def _show(where: str, numbers: Counter[str], notes: list[str], left: list[str]) -> None:
    for name in ("threads", "checkpoints", "items"):
        echo(f"  {counted(numbers[name], name[:-1])} in {where}")
    for head, lines in (("Notes:", notes), ("Not written:", left)):
        if lines:
            echo(head)
        for line in lines:
            echo(f"  - {line}")
