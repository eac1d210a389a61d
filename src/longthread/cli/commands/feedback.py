"""`longthread feedback`: what people think of answers, to read and as an evaluation set."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from longthread.cli import options
from longthread.cli.find_thread import find_thread
from longthread.cli.output_file import output
from longthread.cli.progress import count_noun
from longthread.cli.screen import Console, echo
from longthread.cli.terminal import print_line
from longthread.cli.whole_store import existing
from longthread.errors import InvalidInput
from longthread.model.thread import Opinion
from longthread.runs.services.feedback import JudgedAnswer, all_judged
from longthread.settings import Settings

_MARKS: dict[Opinion, str] = {"up": "+", "down": "-"}
_ANSWER = 200
"""Characters of an answer that are shown."""


def feedback(
    thread: Annotated[
        str | None, typer.Argument(help="Of this conversation alone: its id, the beginning of it, or last.")
    ] = None,
    up: Annotated[bool, typer.Option("--up", help="Those alone that helped.")] = False,
    down: Annotated[bool, typer.Option("--down", help="Those alone that did not.")] = False,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Write a set for `longthread eval analyst` to this file; - writes it here."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """The answers that people judged, the latest first: what they said, the question and its SQL."""
    if up and down:
        raise InvalidInput(reason="--up and --down leave nothing. Give one of them, or neither.")
    settings = Settings.load(database=database, read_only=read_only)

    async def read() -> list[JudgedAnswer]:
        async with existing(settings) as store:
            of = str(await find_thread(store, thread, user=settings.user)) if thread is not None else ""
            return [each async for each in all_judged(store, user_id=settings.user, thread_id=of)]

    wanted: set[Opinion] = {"up"} if up else {"down"} if down else {"up", "down"}
    found = [each for each in asyncio.run(read()) if each.feedback.opinion in wanted]
    if export is not None:
        _export(found, None if str(export) == "-" else export, settings.database, force=force)
        return
    for each in found:
        if as_json:
            print_line(each.to_json())
        else:
            _print(each)
    if not found and not as_json:
        echo("The user {} has judged no such answers here.", settings.user, err=True)


def _export(found: list[JudgedAnswer], to: Path | None, store: str, *, force: bool) -> None:
    with output(to, store, force=force) as file:
        for each in found:
            file.write(json.dumps(each.to_eval(), ensure_ascii=False).encode() + b"\n")
    wrong = sum(each.feedback.opinion == "down" for each in found)
    echo(
        "{}; {} of them did not help: an eval leaves these out until you correct their SQL and set `verdict` to `up`.",
        count_noun(len(found), "answer"),
        wrong,
        err=True,
    )


def _print(each: JudgedAnswer) -> None:
    console, entry = Console(), each.entry
    lines = [f"{_MARKS[each.feedback.opinion]} {each.question}"]
    lines += [f"  “{each.feedback.text}”"] if each.feedback.text else []
    answer = " ".join(entry.shown_text.split())
    lines += [f"  {answer[:_ANSWER]}{'…' if len(answer) > _ANSWER else ''}"]
    lines += [f"  {' '.join(each.sql.split())}"] if each.sql else []
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    told = f"  {each.feedback.at.date()}  {each.model or ''}  longthread view {entry.thread_id} --answer {entry.id}"
    console.print(told, style="dim", markup=False, highlight=False, soft_wrap=True)
