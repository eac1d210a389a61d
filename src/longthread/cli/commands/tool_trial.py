"""`longthread tools …`; `run` tries a tool, without a model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longthread.cli import options
from longthread.cli.commands.ask import arguments_of, ask_decision
from longthread.cli.commands.catalog import commands
from longthread.cli.screen import Console
from longthread.cli.terminal import Terminal, print_line
from longthread.cli.whole_store import existing
from longthread.cli.whole_store import run as run_work
from longthread.errors import InvalidInput, LongthreadError
from longthread.model.run import Decision
from longthread.settings import Settings

if TYPE_CHECKING:  # what builds tools takes time to load, and other commands do not need it
    from longthread.tools.tool import Observation, Tool

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
