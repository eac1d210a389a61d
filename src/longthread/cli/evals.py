"""`longthread eval …`: measure, on questions whose answers are known."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from longthread.cli.progress import shown
from longthread.cli.whole import run
from longthread.errors import InvalidInput
from longthread.testing.watching import Report, watch

evals = typer.Typer(help="Measure on questions whose answers are known.", no_args_is_help=True)


@evals.callback()
def _group() -> None:
    """Measure on questions whose answers are known."""


@evals.command()
def context(
    turns: Annotated[int, typer.Option("--turns", min=1, help="Questions of the conversation.")] = 200,
    window: Annotated[int, typer.Option("--window", min=4_000, help="Tokens of the model's context window.")] = 32_000,
    lang: Annotated[str, typer.Option("--lang", metavar="en|zh", help="The conversation's language.")] = "en",
    seed: Annotated[int, typer.Option("--seed", help="Another seed makes another conversation.")] = 0,
    database: Annotated[
        str | None,
        typer.Option("--database-url", "--database", "-d", metavar="STORE", help="An empty store to play it on."),
    ] = None,
) -> None:
    """How a long conversation's views fit into the window. The last line is a JSON object."""
    if lang not in ("en", "zh"):
        raise InvalidInput(reason=f"--lang is {lang!r}; it can be en or zh.")

    async def work() -> Report:
        with tempfile.TemporaryDirectory() as folder, shown("turns") as progress:
            options: dict[str, Any] = {"count": turns, "window": window, "language": lang, "seed": seed}
            return await watch(Path(folder), **options, database=database, told=progress)

    found = run(work())
    typer.echo(
        f"Of each prompt, {found.cached:.1%} had been sent with the call before; of what had been sent, "
        f"{found.prefix_reuse:.1%} began the next prompt. Changed thinking blocks: {found.changed_thinking}."
    )
    typer.echo(json.dumps(found.to_json()))
