"""`longthread gateway`: endpoints for clients of OpenAI and Anthropic, which keep their conversations."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

import typer

from longthread.cli import options
from longthread.cli.language import say
from longthread.cli.lazy import lazy_group
from longthread.cli.terminal import echo
from longthread.errors import InvalidInput
from longthread.settings import Settings
from longthread.store.open import describe_address

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
def serve(
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
        GatewayOptions(settings.user, keep, strict, ttl, settings.max_reply_mb << 20),  # type: ignore[arg-type]  # it is one of them
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
