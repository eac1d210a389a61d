"""`longthread sources …`; `teach` is of the business terms and examples of a source."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from longthread.cli import options
from longthread.cli.commands.catalog import commands, with_catalog
from longthread.cli.screen import echo, tabbed
from longthread.cli.terminal import print_line
from longthread.errors import InvalidInput

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
        change = with_catalog(database, lambda catalog: catalog.teach(source, given, gone), creates=True)
        if as_json:
            print_line(change.to_json())
        else:
            version = change.definition.version
            told = "Nothing has changed" if change.action == "unchanged" else f"Taught, version {version}"
            echo(f"{told}: the source {change.name}.")
        return
    _list(source, as_json=as_json, database=database)


def _list(source: str, *, as_json: bool, database: str | None) -> None:
    found = with_catalog(database, lambda catalog: catalog.taught_source(source))
    if as_json:
        body = found.body
        print_line({"source": found.name, **{key: body.get(key) for key in ("description", "terms", "examples")}})
        return
    if found.body.get("description"):
        echo(tabbed(("description", found.body["description"])))
    for term in found.body.get("terms") or []:
        names = " / ".join([term["name"], *term.get("synonyms", ())])
        echo(tabbed(("term", names, term.get("meaning", ""), term.get("sql", ""))))
    for example in found.body.get("examples") or []:
        echo(tabbed(("example", example["question"], example["sql"])))
    if not any(found.body.get(key) for key in ("description", "terms", "examples")):
        echo(f"The source {found.name} was taught nothing yet. Try --term or --example.", err=True)
