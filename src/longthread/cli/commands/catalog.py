"""`longthread apply`, `longthread agents|skills|tools|sources|upstreams|routes`, and a tool tried without a model."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.markup import escape
from rich.table import Table

from longthread.cli import options
from longthread.cli.commands.ask import arguments_of, ask_decision
from longthread.cli.language import say, translate
from longthread.cli.server_choice import chosen_server
from longthread.cli.terminal import Console, Terminal, confirm, echo, echo_data, echo_made, join_by_tabs, print_line
from longthread.cli.whole_store import existing
from longthread.cli.whole_store import run as run_work
from longthread.errors import InvalidInput, LongthreadError, OptionNotOnServer
from longthread.model.catalog import Definition, Kind, Version
from longthread.model.markdown import in_line
from longthread.model.run import Decision
from longthread.settings import Settings
from longthread.store.open import why_none

if TYPE_CHECKING:
    from longthread.cli.remote.logins import ServerLogin
    from longthread.tools.catalog.definitions import Catalog
    from longthread.tools.catalog.documents import DefinitionDocument
    from longthread.tools.catalog.names import Names
    from longthread.tools.catalog.plan import Change
    from longthread.tools.tool import Observation, Tool

T = TypeVar("T")
Files = Annotated[
    list[str],
    typer.Option(
        "--file", "-f", metavar="FILE|FOLDER|-", help="YAML, JSON, or a skill's folder; may be given several times."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
_Name = Annotated[str, typer.Argument(help="Its name, or its id.")]
_COUNTED = {
    ("created", True): "{} to be created",
    ("created", False): "{} created",
    ("changed", True): "{} to be changed",
    ("changed", False): "{} changed",
}
_COLOURS = {"+": "green", "~": "yellow", "=": "dim", "-": "red"}


def apply(
    files: Files, dry_run: DryRun = False, as_json: options.AsJson = False, database: options.Database = None
) -> None:
    """Define agents, skills, tools, sources, upstreams and routes as files say, in any order: all of them or none."""
    _apply_files(files, None, dry_run=dry_run, as_json=as_json, database=database)


def commands(kind: Kind) -> typer.Typer:
    """The commands for one kind."""
    app = typer.Typer(help=f"List, show, apply and delete {kind}s.", no_args_is_help=True)

    @app.command("list", help=f"All {kind}s by name, with the built-in ones.")
    def list_(as_json: options.AsJson = False, database: options.Database = None) -> None:
        _list_definitions(kind, as_json=as_json, database=database)

    @app.command(help=f"One {kind} as YAML, which may be changed and applied again.")
    def show(
        name: _Name,
        version: Annotated[int | None, typer.Option("--version", min=1, help="As it was in this version.")] = None,
        history: Annotated[bool, typer.Option("--history", help="All its versions: who made them, and when.")] = False,
        as_json: options.AsJson = False,
        database: options.Database = None,
    ) -> None:
        if history and chosen_server() is not None:
            raise OptionNotOnServer(option="--history")
        if history:
            _show_history(kind, name, as_json=as_json, database=database)
        else:
            _show_definition(kind, name, version, as_json=as_json, database=database)

    @app.command("apply", help=f"Define {kind}s as files say; `kind: {kind}` may be left out.")
    def apply_(
        files: Files, dry_run: DryRun = False, as_json: options.AsJson = False, database: options.Database = None
    ) -> None:
        _apply_files(files, kind, dry_run=dry_run, as_json=as_json, database=database)

    @app.command(help=f"Delete one {kind}. Its versions can still be shown.")
    def delete(
        name: _Name,
        force: Annotated[
            bool, typer.Option("--force", help="Take it out of what uses it; an agent's conversations go with it.")
        ] = False,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
        as_json: options.AsJson = False,
        database: options.Database = None,
    ) -> None:
        _delete_definition(kind, name, force=force, yes=yes, dry_run=dry_run, as_json=as_json, database=database)

    return app


agents = commands("agent")
upstreams = commands("upstream")
routes = commands("route")


def with_catalog(database: str | None, work: Callable[[Catalog], Awaitable[T]], *, creates: bool = False) -> T:
    """Do something with the catalog."""
    from longthread.tools.catalog.definitions import Catalog

    settings = Settings.load(database=database)

    async def run() -> T:
        async with Catalog.open(settings, creates=creates) as catalog:
            return await work(catalog)

    return asyncio.run(run())


def _apply_files(
    files: Sequence[str], kind: Kind | None, *, dry_run: bool, as_json: bool, database: str | None
) -> None:
    from longthread.tools.catalog.documents import STDIN, read_paths

    stdin = _read_stdin() if STDIN in files else ""
    apply_documents(read_paths(files, stdin, kind=kind), dry_run=dry_run, as_json=as_json, database=database)


def apply_documents(
    documents: Sequence[DefinitionDocument], *, dry_run: bool, as_json: bool, database: str | None
) -> None:
    """Apply definitions that were read, and tell what has changed."""
    from longthread.tools.catalog.definitions import Catalog
    from longthread.tools.catalog.plan import lines

    if dry_run and why_none(Settings.load(database=database).database):
        changes = Catalog.check(documents)
    else:
        changes = with_catalog(database, lambda each: each.apply(documents, dry_run=dry_run), creates=not dry_run)
    if as_json:
        for change in changes:
            print_line(change.to_json() | {"dry_run": dry_run})
        return
    for change in changes:
        for line in lines(change):
            _print_coloured(line)
    echo(_summarize_changes(changes, dry_run=dry_run))


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(reason="Standard input is not text in UTF-8.") from None


def _summarize_changes(changes: Sequence[Change], *, dry_run: bool) -> str:
    counted = {action: sum(change.action == action for change in changes) for action in ("created", "changed")}
    said = [say(_COUNTED[action, dry_run], number) for action, number in counted.items() if number]
    same = len(changes) - sum(counted.values())
    said += [say("{} unchanged", same)] if same else []
    return say("{}. Nothing was written.", say(", ").join(said)) if dry_run else say("{}.", say(", ").join(said))


def _print_coloured(line: str) -> None:
    console = Console(soft_wrap=True, highlight=False)
    colour = _COLOURS.get(line.lstrip()[:1]) if console.is_terminal else None
    console.print(f"[{colour}]{escape(line)}[/{colour}]" if colour else escape(line))


def _list_definitions(kind: Kind, *, as_json: bool, database: str | None) -> None:
    if (login := chosen_server()) is not None:
        from longthread.cli.remote import definitions as remote
        from longthread.cli.remote.client import work_on_server

        columns, rows, items = work_on_server(login, lambda client: remote.list_definitions(client, kind, _ABOUT[kind]))
        _print_rows(kind, columns, [tuple(map(in_line, row)) for row in rows], items, as_json=as_json)
        return
    names = with_catalog(database, lambda catalog: catalog.names())
    found = sorted((each for each in names.by_key.values() if each.kind == kind), key=lambda each: each.name)
    rows = [_make_row(names, each) for each in found]
    columns = (kind, "version", _ABOUT[kind], "description")
    _print_rows(kind, columns, rows, [_describe_definition(names, each) for each in found], as_json=as_json)


def _print_rows(
    kind: Kind,
    columns: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    items: Sequence[Mapping[str, Any]],
    *,
    as_json: bool,
) -> None:
    """Print definitions: for programs `items`, one a line."""
    if as_json:
        for item in items:
            print_line(item)
        return
    console = Console()
    if not console.is_terminal:
        for row in rows:
            echo_data(join_by_tabs(row))
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(say(column), no_wrap=column != "description")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
    if not rows:
        nothing = say("There are none. Try: longthread {}s apply -f FILE", kind)
        console.print(f"[dim]{nothing}[/dim]")


_ABOUT: dict[Kind, str] = {
    "tool": "type",
    "source": "address",
    "agent": "skills",
    "skill": "tools",
    "upstream": "base_url",
    "route": "models",
}
"""What a list shows next to the description."""


def _make_row(names: Names, each: Definition) -> tuple[str, ...]:
    written = names.write_definition(each.kind, each.name, each.body)
    about = written[_ABOUT[each.kind]]
    if isinstance(about, list):
        about = ", ".join(str(item.get("tool")) if isinstance(item, dict) else str(item) for item in about)
    state = "built in" if each.is_builtin else f"v{each.version}{'' if each.is_active else ', off'}"
    cells = each.name, state, str(about), " ".join((written.get("description") or "").split())
    return tuple(map(in_line, cells))


def _show_definition(kind: Kind, name: str, version: int | None, *, as_json: bool, database: str | None) -> None:
    if (login := chosen_server()) is not None:
        _show_of_server(login, kind, name, version, as_json=as_json)
        return

    async def read(catalog: Catalog) -> tuple[Names, Definition | Version]:
        names = await catalog.names()
        if version is None:
            return names, names.one(kind, name)
        return names, await catalog.version(kind, name, version)

    names, found = with_catalog(database, read)
    if found.body is None:
        raise InvalidInput(reason=f"With version {found.version} the {kind} {found.name} was deleted.")
    if as_json:
        print_line(_describe_definition(names, found))
        return
    _print_yaml(_describe_head(found), names.write_definition(kind, found.name, found.body))


def _show_of_server(login: ServerLogin, kind: Kind, name: str, version: int | None, *, as_json: bool) -> None:
    from longthread.cli.remote import definitions as remote
    from longthread.cli.remote.client import work_on_server

    found = work_on_server(login, lambda client: remote.find_definition(client, kind, name, version))
    written = found.pop("definition")
    if written is None:
        raise InvalidInput(reason=f"With version {found['version']} the {kind} {name} was deleted.")
    if as_json:
        print_line(found)
    else:
        by = f" · by {found['by']}" if found["by"] else ""
        _print_yaml("built in" if found["is_builtin"] else f"version {found['version']}{by}", written)


def _print_yaml(head: str, written: Mapping[str, Any]) -> None:
    """Print a definition as it may be applied again."""
    from longthread.tools.yamltext import as_yaml

    echo_data(f"# {in_line(head)}")
    kept = {key: value for key, value in written.items() if value not in (None, [], {})}
    sys.stdout.write(as_yaml(kept))


def _describe_head(found: Definition | Version) -> str:
    if isinstance(found, Definition) and found.is_builtin:
        return "built in"
    at = found.updated_at if isinstance(found, Definition) else found.at
    by = f" · by {found.by}" if found.by else ""
    return f"version {found.version}{f' · {at:%Y-%m-%d %H:%M} UTC' if at else ''}{by}"


def _describe_definition(names: Names, found: Definition | Version) -> dict[str, Any]:
    """A definition for a program: what a person writes, with the ids."""
    data = names.write_definition(found.kind, found.name, found.body or {}) | {"id": found.id, "version": found.version}
    data |= {"by": found.by}
    if isinstance(found, Version):
        return data | {"at": found.at.isoformat()}
    times = {"created_at": _format_time(found.created_at), "updated_at": _format_time(found.updated_at)}
    return data | {"is_builtin": found.is_builtin} | times


def _format_time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _show_history(kind: Kind, name: str, *, as_json: bool, database: str | None) -> None:
    found = with_catalog(database, lambda catalog: catalog.history(kind, name))
    for each in found:
        if as_json:
            deleted = each.body is None
            about = {"kind": kind, "name": each.name, "id": each.id, "version": each.version}
            print_line(about | {"deleted": deleted, "at": each.at.isoformat(), "by": each.by})
        else:
            fields = (f"v{each.version}", f"{each.at:%Y-%m-%d %H:%M}", each.by or "", each.name)
            echo_data(join_by_tabs((*fields, "deleted") if each.body is None else fields))


def _delete_definition(
    kind: Kind, name: str, *, force: bool, yes: bool, dry_run: bool, as_json: bool, database: str | None
) -> None:
    from longthread.tools.catalog.definitions import describe_belongings

    found = with_catalog(database, lambda catalog: catalog.delete(kind, name, force=force, dry_run=True))
    belongings = describe_belongings(found.belongings)
    along = [say("{} of it", translate(belongings))] if belongings else []
    along += [say("its place in the {} {}", say(each.kind), each.name) for each in found.changed]
    also = say(", with {}", say(", ").join(along)) if along else ""
    what = say("the {} {}{}", say(kind), found.definition.name, also)
    if not dry_run:
        if not yes:
            confirm("Delete {}?", what)
        found = with_catalog(database, lambda catalog: catalog.delete(kind, found.definition.id, force=force))
    if as_json:
        about = {"kind": kind, "name": found.definition.name, "id": found.definition.id, "deleted": not dry_run}
        changed = [{"kind": each.kind, "name": each.name, "version": each.version} for each in found.changed]
        gone = {"threads": found.belongings.threads, "memories": found.belongings.memories}
        print_line(about | {"changed": changed} | gone)
    else:
        echo("Would delete: {}." if dry_run else "Deleted: {}.", what)
    for problem in found.problems:
        echo_made(problem)


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


tools = commands("tool")


@tools.command()
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, or the one by which a model calls it.")],
    args: Annotated[str, typer.Option("--args", help="Its arguments, as a JSON object.")] = "{}",
    source: Annotated[
        str | None, typer.Option("--source", "-s", help="What a built-in data tool asks, as for `ask`.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Approve the call where the tool needs that.")] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Call a tool as an agent would, without a model, and print what the agent would be told; 1 where it failed."""
    settings, terminal = Settings.load(database=database), Terminal(as_json=as_json)
    given = arguments_of(args)

    async def work() -> Observation:
        from longthread.tools.trial import open_trial

        async with existing(settings) as store, open_trial(store, settings, name, source=source) as tool:
            return await _call_tool(tool, given, terminal, yes=yes)

    observation = run_work(work())
    if as_json:
        print_line(observation)
    else:
        text = json.dumps(observation, ensure_ascii=False, indent=2, default=str)
        Console(soft_wrap=True).print(text, markup=False, highlight=False)
    if not observation.get("ok"):
        raise typer.Exit(1)


async def _call_tool(tool: Tool, given: dict[str, Any], terminal: Terminal, *, yes: bool) -> Observation:
    """What a call comes to: checked first, then approved where it must be, then made."""
    from longthread.tools.arguments import Arguments
    from longthread.tools.tool import make_failure

    try:
        checked = Arguments(tool.parameters, tool=tool.name).validate(given)
    except LongthreadError as error:
        return make_failure(error)
    if not tool.approve or yes:
        return await tool.run(given if not tool.approve else checked, "trial")
    decision = _ask_decision(tool, checked, terminal)
    if decision.type == "reject":
        return {"ok": False, "error": {"type": "rejected", "message": "The call was rejected: it was not made."}}
    return await tool.run(decision.args if decision.type == "edit" else checked, "trial")


def _ask_decision(tool: Tool, args: dict[str, Any], terminal: Terminal) -> Decision:
    """Return the decision of the user at the terminal. Raises InvalidInput: no user is there to ask, or the user does
    not decide."""
    if not terminal.asks:
        raise InvalidInput(reason=f"The tool {tool.name} needs approval. Say --yes, or try it in a terminal.")
    terminal.show_call({"tool": tool.name, "id": "", "description": tool.description, "args": args})
    decision = ask_decision(tool.name, tool.parameters, terminal)
    if decision is None:
        raise InvalidInput(reason=f"Nothing was decided: {tool.name} was not called.")
    return replace(decision, tool=tool.name)
