"""`longthread eval …`: measure, on questions whose answers are known."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longthread.cli.options import ProtocolOption, read_protocol
from longthread.cli.terminal import echo, echo_data, echo_made
from longthread.cli.whole_store import existing, run, show_progress
from longthread.errors import ExtraMissing, InvalidInput
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.open import open_store

if TYPE_CHECKING:
    from longthread.memory.embedder import Embedder
    from longthread.model.catalog import Definition
    from longthread.runs.analyst import Analyst
    from longthread_evals.gold_questions import SqlQuestion

_SECONDS = 120.0
"""How long an embedder may take for the first text that it is given: it may have to be loaded."""

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
        typer.Option("--embedder", help="provider:model, local:FOLDER, or none; else the configured one."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            "--database-url",
            "--database",
            "-d",
            metavar="STORE",
            help="The store that holds FILE's entries meanwhile: a file, a postgresql:// URL, or embedded.",
        ),
    ] = None,
) -> None:
    """How many of the entries that answer a question recall finds. The last line is a JSON object.

    By keywords, and by meaning too where an embedder is named or configured.
    """
    # Here and not above: numpy and LangChain take time to load, and other commands do not need them.
    from longthread.llm.embedders import embedder_of
    from longthread.memory.embedder import name_embedder
    from longthread.memory.recall import Recaller
    from longthread_evals.recall_eval import evaluate, read_collections

    collections = read_collections(file)
    ks = _numbers(k)

    async def work() -> dict[str, Any]:
        settings = Settings.load(database=database)
        async with _store(settings, database) as store:
            meant = None if embedder == "none" else embedder_of(settings, embedder)
            problems = await _problems(meant) if meant else []
            works = meant if not problems else None
            if works:
                echo("By keywords and by meaning, with {}.", name_embedder(works))
            else:
                echo("By keywords alone.")
            for problem in problems:
                echo_made(problem)
            with show_progress("measuring") as progress:
                found = await evaluate(store, collections, Recaller(store, works), ks, progress)
            return found | ({"warnings": [*found.get("warnings", ()), *problems]} if problems else {})

    echo_data(json.dumps(run(work()), ensure_ascii=False))


@evals.command()
def context(
    turns: Annotated[int, typer.Option("--turns", min=1, help="Questions of the conversation.")] = 200,
    window: Annotated[int, typer.Option("--window", min=5_000, help="Tokens of the model's context window.")] = 32_000,
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

    try:
        from longthread_evals.view_watch import WatchReport, watch
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("langchain"):
            raise
        package = str(error.name).partition(".")[0]
        raise ExtraMissing(what="`longthread eval context`", package=package, extra="langchain") from error

    async def work() -> WatchReport:
        with tempfile.TemporaryDirectory() as folder, show_progress("turns") as progress:
            options: dict[str, Any] = {"count": turns, "window": window, "language": lang, "seed": seed}
            return await watch(Path(folder), **options, database=database, told=progress)

    found = run(work())
    echo(
        "Of each prompt, {:.1%} had been sent with the call before; of what had been sent, "
        "{:.1%} began the next prompt. Changed thinking blocks: {}.",
        found.cached,
        found.prefix_reuse,
        found.changed_thinking,
    )
    echo_data(json.dumps(found.to_json()))


@evals.command()
def sql(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Statements, one JSON object a line.")],
    source: Annotated[
        str | None,
        typer.Option("--source", "-s", help="Run there what the guard lets through, under the source's limits."),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, max=600, help="Time of one statement.")] = 5.0,
) -> None:
    """Which statements are refused, stopped, or let through. The last line is a JSON object; exit code 1 if some
    statement did not meet what the file asks of it."""
    from longthread_evals.sql_judge import judge, summary
    from longthread_evals.statements import read_statements

    statements = read_statements(file)
    asked = Settings.load(source=source).source

    async def work() -> dict[str, Any]:
        with show_progress("judging") as progress:
            return summary(await judge(statements, source=asked, seconds=seconds, progress=progress))

    found = run(work())
    echo_data(json.dumps(found, ensure_ascii=False))
    if found["failed"]:
        raise typer.Exit(1)


@evals.command()
def linking(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Gold questions, one JSON object a line.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Their databases, NAME.sqlite, at any depth.")],
    tables: Annotated[int, typer.Option("--tables", min=1, help="Tables of the pool, with made ones.")] = 1_000,
    k: Annotated[str, typer.Option("--k", help="How many likely tables count, separated by commas.")] = "5,10,20",
) -> None:
    """Whether the tables that questions need are among the likeliest of many. The last line is a JSON object."""
    from longthread_evals.linking_eval import measure_ranking, pool_tables, read_questions

    ks = _numbers(k)

    async def work() -> dict[str, Any]:
        schema = await pool_tables(folder, tables)
        return measure_ranking(schema, read_questions(file, schema), ks)

    echo_data(json.dumps(run(work())))


@evals.command()
def analyst(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Questions with gold SQL: ours, BIRD's or Spider's. Without it: the taught examples of --source.",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model; else the configured one.")] = None,
    databases: Annotated[
        Path | None, typer.Option("--databases", help="The folder of their SQLite files; else that of FILE.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", "-s", help="Ask all questions of this source instead.")
    ] = None,
    baseline: Annotated[bool, typer.Option("--baseline", help="Ask the plain prompt beside it.")] = False,
    follow_ups: Annotated[bool, typer.Option("--follow-ups", help="Play FILE's conversations instead.")] = False,
    count: Annotated[
        int | None, typer.Option("--sample", min=1, help="Ask only so many questions, chosen at random.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed chooses others.")] = 7,
    protocol: ProtocolOption = "auto",
    results: Annotated[
        Path | None,
        typer.Option("--results", help="Write each outcome here. If it is there, the eval goes on behind it."),
    ] = None,
) -> None:
    """How many questions the analyst answers with the rows of their gold SQL. The last line is a JSON object."""
    from longthread.llm.models import model_name, resolve_model
    from longthread.runs.analyst import Analyst
    from longthread.tools.catalog.teach import name_of
    from longthread_evals.analyst_eval import AnalystEval, AnalystOutcome, read_outcomes, tally
    from longthread_evals.gold_questions import find_database, in_conversations, read_questions, sample

    spoken = read_protocol(protocol)
    if file is None and source is None:
        raise InvalidInput(reason="There is nothing to ask. Give a FILE, or --source with the name of a taught source.")

    async def work() -> dict[str, Any]:
        outcomes: list[AnalystOutcome] = []
        taught = await _read_taught(source) if file is None and source is not None else None
        if taught is not None:
            questions = taught.questions
        else:
            named = None if source is None else name_of(source)
            questions = _without_wrong(read_questions(file or Path(), database=named))
        folder = databases or (file or Path()).parent
        address = taught.address if taught is not None else source
        asked = [
            [(question, address or str(find_database(folder, question.database))) for question in thread]
            for thread in sample(in_conversations(questions, follow_ups=follow_ups), count, seed)
        ]
        with tempfile.TemporaryDirectory(prefix="longthread-eval-") as store, show_progress("questions") as progress:
            settings = Settings.load(database=Path(store) / "eval.db", source=address)
            name = model_name(model, settings)
            plain = resolve_model(name, settings) if baseline else None
            async with AsyncExitStack() as stack:
                if plain is not None:
                    stack.push_async_callback(plain.close)
                opened = await stack.enter_async_context(Analyst.open(settings))
                if taught is not None:
                    await _teach(opened, taught)
                evaluation = AnalystEval(opened, name, plain, spoken, read_outcomes(results) if results else {})
                total = sum(map(len, asked))
                async for outcome in evaluation.outcomes(asked):
                    outcomes.append(outcome)
                    progress(len(outcomes), total, outcome.question[:60])
                    line = json.dumps(outcome.to_json(), ensure_ascii=False)
                    echo_data(line)
                    if results is not None and outcome is not evaluation.taken.get(
                        (outcome.database, outcome.question)
                    ):
                        with results.open("a", encoding="utf-8") as lines:
                            lines.write(f"{line}\n")
        return tally(outcomes)

    echo_data(json.dumps(run(work()), ensure_ascii=False))


def _without_wrong(questions: Sequence[SqlQuestion]) -> Sequence[SqlQuestion]:
    """Return the questions with a known right statement; print how many are left out. Raises InvalidInput: there are
    none."""
    known = [each for each in questions if not each.lacks_gold]
    left = len(questions) - len(known)
    if not known:
        reason = f"No right SQL is known of the {left} questions of this file. Correct it, and set `verdict` to `up`."
        raise InvalidInput(reason=reason)
    if left:
        text = "{} questions are left out, of which no right SQL is known. Correct it, and set `verdict` to `up`."
        echo(text, left, err=True)
    return known


@dataclass(frozen=True)
class _Taught:
    """A source of the catalog with its examples as questions. `address` has its secrets."""

    definition: Definition
    address: str
    questions: Sequence[SqlQuestion]


async def _read_taught(name: str) -> _Taught:
    """Read a source of the store and its examples with SQL. Raises DefinitionNotFound; InvalidInput: it has none."""
    from longthread.model.catalog import source_of
    from longthread.store import catalog
    from longthread.tools.catalog.address import fill_in_secrets
    from longthread.tools.catalog.names import Names
    from longthread_evals.gold_questions import SqlQuestion

    async with existing(Settings.load()) as store, store.reading() as tx:
        stored = await catalog.some(tx, "source", names=[name], ids=[name.lower()])
    definition = Names(each.definition for each in stored).one("source", name)
    source = source_of(definition)
    questions = [SqlQuestion(source.name, each.question, (each.sql,)) for each in source.examples if each.sql]
    if not questions:
        how = f"Teach it some: longthread sources teach {source.name} --example QUESTION --sql SQL"
        raise InvalidInput(reason=f"The source {source.name} has no example with SQL. {how}")
    return _Taught(definition, fill_in_secrets(source.address), questions)


async def _teach(analyst: Analyst, taught: _Taught) -> None:
    """Give the eval's own store the source's terms and metrics, but no examples: they hold the answers."""
    from longthread.store import catalog

    definition = replace(taught.definition, body={**taught.definition.body, "examples": []})
    async with analyst.store.writing() as tx:
        await catalog.put(tx, definition)


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and 0 < int(part) <= 1000 for part in parts):
        raise InvalidInput(reason=f"--k is {text!r}; allowed are whole numbers from 1 to 1000, separated by commas.")
    return sorted({int(part) for part in parts})


async def _problems(embedder: Embedder) -> list[str]:
    """Why an embedder cannot be used; nothing where it can."""
    from longthread.memory.embedder import ANY, EmbedderFailed, made_by, name_embedder

    try:
        await made_by(partial(embedder.query, ANY), _SECONDS)
    except EmbedderFailed as error:
        return [f"The embedder {name_embedder(embedder)} does not work: {error}"]
    return []


@asynccontextmanager
async def _store(settings: Settings, database: str | None) -> AsyncIterator[Driver]:
    """The store that was named, or one that is thrown away."""
    if database is not None:
        async with open_store(settings.database, read_only=settings.read_only) as store:
            yield store
        return
    with tempfile.TemporaryDirectory(prefix="longthread-eval-") as folder:
        async with open_store(str(Path(folder) / "eval.db")) as store:
            yield store
