"""`longthread serve`, `demo`, `mcp` and `gateway`: the server with its page, MCP, and the gateway."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

import typer

from longthread.cli import options
from longthread.cli.language import say
from longthread.cli.lazy import lazy_group
from longthread.cli.terminal import echo
from longthread.errors import ExtraMissing, InvalidInput
from longthread.extras import DEMO_PACKAGE
from longthread.settings import EMBEDDED, Settings
from longthread.store.open import describe_address, is_postgres

Host = Annotated[str | None, typer.Option(help="The address to listen on; 127.0.0.1 by default.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="The port; 8765 by default, 0 for any free one.")]
Postgres = Annotated[
    str | None,
    typer.Option(
        help="Keep the conversations in PostgreSQL: its URL, or embedded for one of the server's own.",
        metavar="embedded[:FOLDER]|URL",
    ),
]
NoLogin = Annotated[
    bool,
    typer.Option("--no-login", help="Serve everyone who reaches the server as one user, without a login."),
]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]


def serve(
    source: options.SourceOption = None,
    model: options.Model = None,
    host: Host = None,
    port: Port = None,
    open_browser: Open = False,
    database: options.Database = None,
    postgres: Postgres = None,
    no_login: NoLogin = False,
) -> None:
    """Serve the page and the API."""
    store = _store(database, postgres)
    settings = Settings.load(
        source=source, model=model, host=host, port=port, database=store, no_login=no_login or None
    )
    _serve(settings, open_browser=open_browser)


def demo(
    host: Host = None,
    port: Port = None,
    open_browser: Open = False,
    database: options.Database = None,
    postgres: Postgres = None,
    no_login: NoLogin = False,
) -> None:
    """Serve the page with a generated spaceflight database to ask, and a model that needs no key."""
    expect_demo()
    store = _store(database, postgres)
    settings = Settings.load(
        env_file=None, source="demo", model="demo", host=host, port=port, database=store, no_login=no_login or None
    )
    _serve(settings, open_browser=open_browser)


def expect_demo() -> None:
    """Check that the plugin that has the demo works. Raises ExtraMissing: it is not installed; PluginFailed."""
    from longthread.plugins import plugins

    if plugins().find("models", "demo") is None:
        raise plugins().find_failure(DEMO_PACKAGE) or ExtraMissing(
            what="The demo", package=DEMO_PACKAGE, extra=DEMO_PACKAGE
        )


def _store(database: str | None, postgres: str | None) -> str | None:
    if postgres is None:
        return database
    if database is not None:
        raise InvalidInput(reason="--database and --postgres both say where the conversations are. Give one of them.")
    if postgres.partition(":")[0] != EMBEDDED and not is_postgres(postgres):
        raise InvalidInput(reason="--postgres takes a postgresql:// URL, embedded, or embedded:FOLDER.")
    return postgres


def _serve(settings: Settings, *, open_browser: bool) -> None:
    # Here and not above: the web framework takes time to load, and no other command needs it.
    from longthread.server.app import run

    run(settings, open_browser=open_browser, on_ready=lambda url: _announce(url, settings), on_setup=_announce_setup)


def _announce(url: str, settings: Settings) -> None:
    from longthread.tools.analysis.address import redact_spec

    echo("Conversations are in  {}", describe_address(settings.database))
    source = redact_spec(settings.source) if settings.source else say("none: start with --source")
    echo("Source                {}", source)
    model = settings.model or say("demo (rule-based; set LONGTHREAD_MODEL for a real one)")
    echo("Model                 {}", model)
    if settings.source == "demo":
        echo("Try                   运载火箭有哪些？   How many launches were there per year?")
    echo("Ctrl-C stops it; everything is kept.")
    echo("Longthread is at      {}", url)


def _announce_setup(address: str) -> None:
    echo("There is no user yet. Make the first administrator within an hour at {}", address)


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


PORT = 8766
GatewayHost = Annotated[str | None, typer.Option(help="The address to listen on; 127.0.0.1 by default.")]
GatewayPort = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")]
AnthropicUrl = Annotated[
    str, typer.Option("--anthropic-url", help="Where requests in Anthropic's dialect go.", metavar="URL")
]
OpenAiUrl = Annotated[str, typer.Option("--openai-url", help="Where requests in OpenAI's dialects go.", metavar="URL")]
KeepOption = Annotated[
    str,
    typer.Option(
        help="What is kept: all, what the client does not forbid (store: false), or nothing.",
        metavar="all|asked|nothing",
    ),
]
Ttl = Annotated[
    int | None, typer.Option("--ttl", min=1, help="Delete a conversation this many seconds after its last call.")
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin",
        help="Answer web pages of this origin, such as http://localhost:3000; may be repeated.",
        metavar="ORIGIN",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse requests that cannot be kept.")]

_KEPT = {
    "all": "Everything is kept.",
    "asked": "Everything is kept but what says store: false.",
    "nothing": "Nothing is kept, and nothing is restored.",
}

gateway = typer.Typer(cls=lazy_group({"cleanup": "longthread.cli.commands.db:cleanup"}), invoke_without_command=True)


@gateway.callback()
def serve_gateway(
    context: typer.Context,
    host: GatewayHost = None,
    port: GatewayPort = PORT,
    anthropic_url: AnthropicUrl = "",
    openai_url: OpenAiUrl = "",
    keep: KeepOption = "all",
    strict: Strict = False,
    ttl: Ttl = None,
    allow_origin: AllowOrigin = None,
    database: options.Database = None,
) -> None:
    """Serve clients of OpenAI and Anthropic, and keep their conversations."""
    if context.invoked_subcommand is not None:
        return
    if keep not in ("all", "asked", "nothing"):
        raise InvalidInput(reason=f"--keep takes all, asked or nothing, and not {keep}.")
    for name, url in (("--anthropic-url", anthropic_url), ("--openai-url", openai_url)):
        if url and not _is_url(url):
            raise InvalidInput(reason=f"{name} takes an http:// or https:// URL without a password.")
    origins = ",".join(allow_origin) if allow_origin else None
    settings = Settings.load(host=host, port=port, database=database, gateway_origins=origins)
    # Here and not above: other commands do not need it.
    from longthread.server.gateway_access import require_token

    require_token(settings)  # before the rest is loaded
    from longthread.gateway.service import GatewayOptions
    from longthread.server.gateway import run

    def ready(url: str) -> None:
        echo("Conversations are in  {}", describe_address(settings.database))
        echo("Anthropic's clients   ANTHROPIC_BASE_URL={}", url)
        echo("OpenAI's clients      OPENAI_BASE_URL={}/v1", url)
        echo("Ctrl-C stops it. {}", say(_KEPT[keep]))
        echo("The gateway is at     {}", url)

    counts = run(
        settings,
        GatewayOptions(settings.user, keep, strict, ttl, settings.max_reply_mb << 20, settings),  # type: ignore[arg-type]  # it is one of them
        anthropic_url=anthropic_url,
        openai_url=openai_url,
        on_ready=ready,
    )
    echo(
        "Stopped after {} requests: {} restored, {} repaired, {} not kept.",
        counts.requests,
        counts.restored,
        counts.repaired,
        counts.not_kept,
    )


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.password is None and parts.port != 0
    except ValueError:
        return False
