"""What the core offers by the hooks of plugins."""

from __future__ import annotations

from longthread.plugins import OfferedPlaces, hookimpl


@hookimpl
def offer_commands() -> OfferedPlaces:
    """Return the commands of `longthread`."""
    from longthread.cli.commands import COMMANDS

    return COMMANDS


@hookimpl
def offer_models() -> OfferedPlaces:
    """Return the providers of models."""
    from longthread.llm.providers import PROVIDERS

    return dict.fromkeys(PROVIDERS, "longthread.llm.models:provider_model")


@hookimpl
def offer_embedders() -> OfferedPlaces:
    """Return the providers of embedders that are not LangChain's."""
    return {
        "local": "longthread.llm.embedders:local_embedder",
        "openai": "longthread.llm.embedders:openai_embedder",
    }
