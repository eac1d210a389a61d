"""`longthread mcp`: conversations, recall and the analyst, for clients of the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from longthread.cli import options
from longthread.cli.screen import echo
from longthread.errors import ExtraMissing
from longthread.settings import Settings

_PORT = 8766


def mcp(
    source: options.SourceOption = None,
    model: options.Model = None,
    agent: options.AgentOption = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Whose conversations; by default LONGTHREAD_USER's.")
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Over streamable HTTP; else over standard streams.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen on, with --http.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port, with --http; 0 for any free one.")] = _PORT,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only tools that change nothing.")] = False,
    any_source: Annotated[
        bool, typer.Option("--any-source", help="Clients may name any file or URL to ask, not only known sources.")
    ] = False,
    database: options.Database = None,
) -> None:
    """Serve conversations, recall and the analyst to MCP clients. Nothing else is printed."""
    settings = Settings.load(source=source, model=model, user=user, database=database, host=host, port=port)
    # Here and not above: this takes time to load, and no other command needs it.
    try:
        import mcp as library
    except ImportError as error:
        raise ExtraMissing(what="`longthread mcp`", package="mcp", extra="mcp") from error
    from longthread.server.mcp.serve import PATH, ClientRights, run_http, run_stdio

    del library
    choice = ClientRights(agent=agent, any_source=any_source, read_only=read_only)
    if http:
        run_http(settings, choice, on_ready=lambda url: echo("Longthread is at {}{}", url, PATH, err=True))
    else:
        run_stdio(settings, choice)
