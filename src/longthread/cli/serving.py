"""`longthread serve` and `longthread demo`: the server and its page."""

from __future__ import annotations

from typing import Annotated

import typer

from longthread.cli import options
from longthread.settings import Settings

Host = Annotated[str | None, typer.Option(help="The address to listen on; 127.0.0.1 by default.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="The port; 8765 by default, 0 for any free one.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]


def serve(
    source: options.Source = None,
    model: options.Model = None,
    host: Host = None,
    port: Port = None,
    open_browser: Open = False,
    database: options.Database = None,
) -> None:
    """Serve the page and the API."""
    settings = Settings.load(source=source, model=model, host=host, port=port, database=database)
    _serve(settings, open_browser=open_browser)


def demo(
    host: Host = None,
    port: Port = None,
    open_browser: Open = False,
    database: options.Database = None,
) -> None:
    """Serve the page with a generated spaceflight database to ask, and a model that needs no key."""
    settings = Settings.load(env_file=None, source="demo", model="demo", host=host, port=port, database=database)
    _serve(settings, open_browser=open_browser)


def _serve(settings: Settings, *, open_browser: bool) -> None:
    # Here and not above: the web framework takes time to load, and no other command needs it.
    from longthread.server.serve import run

    run(settings, open_browser=open_browser, on_ready=lambda url: _announce(url, settings))


def _announce(url: str, settings: Settings) -> None:
    typer.echo(f"Longthread is at      {url}")
    typer.echo(f"Conversations are in  {settings.database}")
    typer.echo(f"Source                {settings.source or 'none: start with --source'}")
    typer.echo(f"Model                 {settings.model or 'demo (rule-based; set LONGTHREAD_MODEL for a real one)'}")
    if settings.source == "demo":
        typer.echo("Try                   运载火箭有哪些？   How many launches were there per year?")
    typer.echo("Ctrl-C stops it; everything is kept.")
