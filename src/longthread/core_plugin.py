"""What the core offers by the hooks of plugins."""

from __future__ import annotations

from longthread.plugins import OfferedPlaces, OfferKind, fold_name, hookimpl


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


def is_reserved(kind: OfferKind, name: str, package: str) -> bool:
    """Return whether a plugin of a package may not offer a name, which means something of Longthread's own: a family of
    models, a provider of LangChain's, the tools that are built in, or what another package of Longthread offers."""
    from longthread.cli.commands import PACKAGE_COMMANDS
    from longthread.extras import DEMO_PACKAGE
    from longthread.llm.providers import PROVIDERS, ROWS

    folded = fold_name(kind, name)
    if kind == "commands":
        return PACKAGE_COMMANDS.get(folded, package) != package
    if kind in ("models", "sources") and folded == "demo":
        return package != DEMO_PACKAGE
    if kind == "models":
        return name.lower().startswith(tuple(family for row in ROWS.values() for family in row.families))
    if kind == "embedders":
        return folded in PROVIDERS
    return kind == "tool_types" and folded == "builtin"
