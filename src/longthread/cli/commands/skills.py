"""`longthread skills …`; `import` and `export` are of skills as folders, in the form of Agent Skills."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longthread.cli import options
from longthread.cli.commands.catalog import DryRun, apply_documents, commands, with_catalog
from longthread.cli.screen import echo
from longthread.cli.terminal import print_line

skills = commands("skill")


@skills.command("import")
def import_(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER…", help="Folders with a SKILL.md, or folders of such folders.")
    ],
    dry_run: DryRun = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Define skills as folders with a SKILL.md say (Agent Skills): all of them or none. One of the name is replaced."""
    from longthread.tools.catalog.documents import read_skills

    apply_documents(read_skills(folders), dry_run=dry_run, as_json=as_json, database=database)


@skills.command()
def export(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Skills, by name or id.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The folder to write them into.")],
    force: Annotated[bool, typer.Option("--force", help="Replace folders of skills that are there.")] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Write skills as folders with a SKILL.md (Agent Skills), which `import` reads."""
    written = with_catalog(database, lambda catalog: catalog.export_skills(names, to, force=force))
    for name, folder in zip(names, written, strict=True):
        if as_json:
            print_line({"name": name, "folder": str(folder)})
        else:
            echo("Written: {}", folder)
