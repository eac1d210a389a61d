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


@hookimpl
def offer_engines() -> OfferedPlaces:
    """Return the schemes of the dialects that a source may have."""
    from longthread.tools.analysis.dialects.dialect import load_dialects

    return {scheme: f"{type(each).__module__}:DIALECT" for each in load_dialects() for scheme in each.schemes}


@hookimpl
def offer_tool_types() -> OfferedPlaces:
    """Return the types of tools: each module of `longthread.tools.types` has one, under its name."""
    import pkgutil

    from longthread.tools import types

    names = sorted(module.name for module in pkgutil.iter_modules(types.__path__))
    return {name: f"{types.__name__}.{name}:TYPE" for name in names}
