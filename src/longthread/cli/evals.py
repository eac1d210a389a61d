"""`longthread eval …`: measure, on questions whose answers are known."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from longthread.cli.progress import shown
from longthread.cli.whole import run
from longthread.errors import InvalidInput
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.open import open_store

evals = typer.Typer(help="Measure on questions whose answers are known.", no_args_is_help=True)


@evals.callback()
def _group() -> None:
    """Measure on questions whose answers are known."""


@evals.command()
def recall(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Entries and questions, one JSON object a line.")],
    k: Annotated[str, typer.Option("--k", help="How many found entries count, separated by commas.")] = "5,10,20",
    embedder: Annotated[
        str | None,
        typer.Option("--embedder", help="provider:model, or local:FOLDER. Without one, keywords alone."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            "--database-url",
            "--database",
            "-d",
            metavar="STORE",
            help="The store to measure: a file, a postgresql:// URL, or embedded. It is left as it was.",
        ),
    ] = None,
) -> None:
    """How many of the entries that answer a question recall finds. The last line is a JSON object."""
    # Here and not above: numpy and LangChain take time to load, and other commands do not need them.
    from longthread.agent.embedders import embedder_of
    from longthread.memory.recall import Recaller
    from longthread.testing.recalling import evaluate, read_collections

    collections = read_collections(file)
    ks = _numbers(k)

    async def work() -> dict[str, Any]:
        settings = Settings.load(database=database)
        async with _store(settings, database) as store:
            recaller = Recaller(store, embedder_of(settings, embedder) if embedder else None)
            with shown("measuring") as progress:
                return await evaluate(store, collections, recaller, ks, progress)

    typer.echo(json.dumps(run(work()), ensure_ascii=False))


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and 0 < int(part) <= 1000 for part in parts):
        raise InvalidInput(reason=f"--k is {text!r}; allowed are whole numbers from 1 to 1000, separated by commas.")
    return sorted({int(part) for part in parts})


@asynccontextmanager
async def _store(settings: Settings, database: str | None) -> AsyncIterator[Driver]:
    """The store that was named, or one that is thrown away."""
    if database is not None:
        async with open_store(settings.database) as store:
            yield store
        return
    with tempfile.TemporaryDirectory(prefix="longthread-eval-") as folder:
        async with open_store(str(Path(folder) / "eval.db")) as store:
            yield store
