"""`longthread sources …`; `teach` is of the business terms and examples of a source, `metrics` of its metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longthread.cli import options
from longthread.cli.commands.catalog import commands, with_catalog
from longthread.cli.language import translate
from longthread.cli.terminal import echo, echo_data, join_by_tabs, print_line
from longthread.cli.whole_store import count_noun
from longthread.errors import (
    CatalogInvalid,
    DefinitionNotFound,
    ExtraMissing,
    InvalidInput,
    SecretUnusable,
    SourceError,
)
from longthread.model.markdown import in_line
from longthread.settings import Settings

if TYPE_CHECKING:
    from longthread.tools.catalog.definitions import Catalog
    from longthread.tools.catalog.plan import Change

sources = commands("source")


@sources.command()
def teach(
    source: Annotated[str, typer.Argument(help="A source of the catalog, or an address: then it becomes one.")],
    term: Annotated[str | None, typer.Option("--term", help="A business term.")] = None,
    meaning: Annotated[str | None, typer.Option("--meaning", help="What the term means.")] = None,
    synonym: Annotated[list[str] | None, typer.Option("--synonym", help="Another word for it; several times.")] = None,
    example: Annotated[str | None, typer.Option("--example", help="A question, which --sql answers.")] = None,
    sql: Annotated[str | None, typer.Option("--sql", help="SQL of the term (also a part), or of the example.")] = None,
    description: Annotated[str | None, typer.Option("--description", help="What the source holds.")] = None,
    remove_term: Annotated[list[str] | None, typer.Option("--remove-term", help="Take a term out.")] = None,
    remove_example: Annotated[list[str] | None, typer.Option("--remove-example", help="Take an example out.")] = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Teach a source business terms and examples, or list what it was taught. Taught twice, it is taught once."""
    given: dict[str, Any] = {"description": description} if description else {}
    if term is not None:
        parts = {"name": term, "meaning": meaning, "sql": sql, "synonyms": synonym}
        given["terms"] = [{name: value for name, value in parts.items() if value}]
    elif meaning or synonym:
        raise InvalidInput(reason="--meaning and --synonym are a term's. Give its name with --term.")
    if example is not None:
        if term is not None:
            raise InvalidInput(reason="Teach a term or an example: --sql is of one of them.")
        given["examples"] = [{"question": example, "sql": sql or ""}]
    elif sql and term is None:
        raise InvalidInput(reason="--sql is of a term or of an example. Give --term NAME or --example QUESTION.")
    gone = {"terms": remove_term or [], "examples": remove_example or []}
    if given or any(gone.values()):
        change = with_catalog(database, lambda catalog: _teach(catalog, source, given, gone), creates=True)
        if as_json:
            print_line(change.to_json())
        else:
            version = change.definition.version
            if change.action == "unchanged":
                echo("Nothing has changed: the source {}.", change.name)
            else:
                echo("Taught, version {}: the source {}.", version, change.name)
        return
    _list_taught(source, as_json=as_json, database=database)


async def _teach(catalog: Catalog, source: str, given: Mapping[str, Any], gone: Mapping[str, Sequence[str]]) -> Change:
    """Teach a source SQL that it can run. One that cannot be opened now is taught all the same, and this is said."""
    from longthread.tools.catalog.taught_sql import has_sql

    unchecked = None
    if has_sql(given):
        try:
            problems = await _find_wrong_sql(catalog, source, given)
        except (SourceError, ExtraMissing, SecretUnusable) as error:
            unchecked, problems = error, []
        if problems:
            raise CatalogInvalid(problems=problems)
    change = await catalog.teach(source, given, gone)
    if unchecked is not None:
        echo("The SQL was not compared with the source: {}", in_line(translate(str(unchecked))), err=True)
    return change


async def _find_wrong_sql(catalog: Catalog, source: str, given: Mapping[str, Any]) -> list[str]:
    from longthread.tools.analysis.open import open_source
    from longthread.tools.catalog.taught_sql import find_wrong_sql
    from longthread.tools.own_files import OwnFiles

    spec = source
    with suppress(DefinitionNotFound):  # else it is an address
        spec = await catalog.address(source)
    async with await open_source(spec, own=OwnFiles.of(Settings.load())) as opened:
        return await find_wrong_sql(opened, given)


@sources.command()
def metrics(
    source: Annotated[str, typer.Argument(help="A source of the catalog, or an address: then it becomes one.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE|FOLDER]…", help="dbt's semantic models and metrics, or Cube's cubes, in YAML."),
    ] = None,
    skip: Annotated[bool, typer.Option("--skip", help="Leave out what cannot be taken over.")] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Import the metrics of a source from dbt or Cube, or list those it has. Metrics of the same names are replaced."""
    if not files:
        _list_metrics(source, as_json=as_json, database=database)
        return
    from longthread.tools.semantic.imported import read_layers

    layer = read_layers(files)
    if layer.problems and not skip:
        raise CatalogInvalid(problems=[*layer.problems, "--skip imports the others."])
    for problem in layer.problems:
        echo("Left out: {}", in_line(translate(problem)), err=True)
    given = {"semantics": layer.semantics}
    change = with_catalog(database, lambda catalog: catalog.teach(source, given), creates=True)
    if as_json:
        print_line(change.to_json())
        return
    parts = ", ".join(count_noun(len(items), kind.removesuffix("s")) for kind, items in given["semantics"].items())
    echo("Imported {}, version {}: the source {}.", parts, change.definition.version, change.name)


def _list_metrics(source: str, *, as_json: bool, database: str | None) -> None:
    found = with_catalog(database, lambda catalog: catalog.taught_source(source))
    layer = found.body.get("semantics") or {}
    if as_json:
        print_line({"source": found.name, **layer})
        return
    for kind in ("metric", "dimension"):
        for each in layer.get(f"{kind}s") or []:
            names = " / ".join([each["name"], *each.get("synonyms", ())])
            echo_data(join_by_tabs((kind, names, each.get("meaning", ""), each["sql"])))
    if not layer:
        echo("The source {} has no metrics yet. Give files of dbt's or Cube's.", found.name, err=True)


def _list_taught(source: str, *, as_json: bool, database: str | None) -> None:
    found = with_catalog(database, lambda catalog: catalog.taught_source(source))
    if as_json:
        body = found.body
        print_line({"source": found.name, **{key: body.get(key) for key in ("description", "terms", "examples")}})
        return
    if found.body.get("description"):
        echo_data(join_by_tabs(("description", found.body["description"])))
    for term in found.body.get("terms") or []:
        names = " / ".join([term["name"], *term.get("synonyms", ())])
        echo_data(join_by_tabs(("term", names, term.get("meaning", ""), term.get("sql", ""))))
    for example in found.body.get("examples") or []:
        echo_data(join_by_tabs(("example", example["question"], example["sql"])))
    if not any(found.body.get(key) for key in ("description", "terms", "examples")):
        echo("The source {} was taught nothing yet. Try --term or --example.", found.name, err=True)
