"""The hooks that Longthread can be extended by, and the plugins that are installed.

A plugin is a Python package with an entry point in the group `longthread`, which names a module of functions for the
hooks below, each marked with `@hookimpl`. The core offers its own by the same hooks, in `longthread.core_plugin`.

A hook returns names, and for each the place of what it means: `module:attribute`, which is imported when the name is
used. Installed plugins are looked for when the core does not know a name, or when all names are listed.
"""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Literal, Protocol, get_args

from pluggy import HookimplMarker, HookspecMarker, PluginManager

from longthread.errors import PluginFailed

GROUP = CORE = "longthread"
"""The group of entry points, and the name of the core's own plugin."""
OfferKind = Literal["commands", "models", "embedders", "engines", "sources", "tool_types"]
"""What a plugin can offer. The hook of each is `offer_` and its kind."""
OfferedPlaces = Mapping[str, str]
"""Names, and for each the place of what it means, `module:attribute`."""
FieldTypes = Mapping[str, Any]
"""Attributes by name, and of each its type, or several in a union."""

hookspec, hookimpl = HookspecMarker(GROUP), HookimplMarker(GROUP)
_PLACE = re.compile(r"[\w.]+:\w+")
_WORD, _LOWER_WORD = re.compile(r"[A-Za-z0-9][\w-]*"), re.compile(r"[a-z0-9_]+")
_NAMES: Mapping[OfferKind, tuple[re.Pattern[str], str]] = MappingProxyType(
    {
        "commands": (_WORD, "letters, digits, - and _"),
        "models": (re.compile(r"\S(?:.*\S)?"), "a text without space around it"),
        "embedders": (_LOWER_WORD, "small letters, digits and _"),
        "engines": (_LOWER_WORD, "small letters, digits and _"),
        "sources": (re.compile(r"(?! )[^/\\.:]{1,100}(?<! )"), "at most 100 characters, without : . / and \\"),
        "tool_types": (_WORD, "letters, digits, - and _"),
    }
)
"""What a name of each kind is: as a pattern, and in words. No other can be asked for."""
_TYPES: Mapping[OfferKind, str] = MappingProxyType(
    {
        "engines": "longthread.tools.analysis.dialects.dialect:SqlDialect",
        "tool_types": "longthread.tools.tool_type:ToolType",
    }
)
"""The places of the types that some kinds have. What is offered of another kind is called."""
_logger = logging.getLogger(__name__)


class Hooks(Protocol):
    """The hooks. A plugin implements the ones it needs."""

    @hookspec
    def offer_commands(self) -> OfferedPlaces:
        """Commands of `longthread`: a function with the annotations of Typer, or a `typer.Typer` for a group."""

    @hookspec
    def offer_models(self) -> OfferedPlaces:
        """Models by their names, or by what is before the colon of their names: `factory(name, settings)`, which
        returns a `longthread.llm.chat.ChatModel` and raises ModelUnavailable."""

    @hookspec
    def offer_embedders(self) -> OfferedPlaces:
        """Embedders by what is before the colon of their names: `factory(name, settings)`, which returns a
        `longthread.memory.embedder.Embedder` and raises EmbedderUnavailable."""

    @hookspec
    def offer_engines(self) -> OfferedPlaces:
        """Databases by the schemes of their addresses: a `longthread.tools.analysis.dialects.dialect.SqlDialect`, whose
        name is one of the schemes. Its `open_server` returns the engine; if it `is_file`, its `load_file_engine`
        returns what makes the engine of a file, here and in the process that runs the statements."""

    @hookspec
    def offer_sources(self) -> OfferedPlaces:
        """Databases by the name that a question gives as its source: `function()`, which returns a title and the path
        of a SQLite or DuckDB file, a `Path` or a text. It may take seconds to make the file."""

    @hookspec
    def offer_tool_types(self) -> OfferedPlaces:
        """Types of tools by the `type` of a definition: a `longthread.tools.tool_type.ToolType`."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a plugin offers under a name."""

    plugin: str
    place: str
    kind: OfferKind

    def load(self) -> Any:
        """Import it. Raises PluginFailed: its plugin cannot be imported, or it is not of its kind's type."""
        if self.plugin == CORE:
            return _import_place(self.place)
        try:
            offered = _import_place(self.place)
        except (Exception, SystemExit) as error:
            raise PluginFailed(plugin=self.plugin, reason=describe_error(error)) from error
        wanted = _import_place(_TYPES[self.kind]) if self.kind in _TYPES else None
        if isinstance(offered, wanted) if wanted else callable(offered):
            return offered
        reason = (
            f"{self.place} is of the type {type(offered).__name__}, and offer_{self.kind} needs "
            f"{wanted.__name__ if wanted else 'a function'}: correct its place."
        )
        raise PluginFailed(plugin=self.plugin, reason=reason)

    def make(self, needed: FieldTypes, *given: Any) -> Any:
        """Return what the factory of a plugin makes. Raises PluginFailed: it is something else than is `needed`; and
        what the factory raises."""
        made = self.load()(*given)
        try:
            expect_fields(made, needed)
        except TypeError as error:
            raise PluginFailed(plugin=self.plugin, reason=describe_error(error)) from error
        return made


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed plugin, and either what it offers or the reason why it is left out."""

    name: str
    package: str
    version: str
    offers: Mapping[OfferKind, OfferedPlaces] = field(default_factory=dict)
    failure: str = ""


def find_entries() -> Iterable[EntryPoint]:
    """Return the entry points of the installed plugins, by name."""
    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


class Plugins:
    """The core's offers and those of the plugins that `find` finds. A plugin that fails to load is left out, with a
    warning in the log; so is one that offers a name which the core or another one has."""

    def __init__(self, find: Callable[[], Iterable[EntryPoint]] = find_entries) -> None:
        self._find = find
        self._manager = PluginManager(GROUP)
        self._manager.add_hookspecs(Hooks)
        self._core: Any = importlib.import_module("longthread.core_plugin")
        self._manager.register(self._core, CORE)

    @cached_property
    def core(self) -> Mapping[OfferKind, OfferedPlaces]:
        """What the core offers."""
        return self._read_offers(CORE)

    @cached_property
    def installed(self) -> tuple[Plugin, ...]:
        """The installed plugins. They are loaded at the first use."""
        plugins: list[Plugin] = []
        for entry in self._find():
            plugins.append(self._load(entry, [self.core, *(each.offers for each in plugins)]))
        return tuple(plugins)

    def find(self, kind: OfferKind, name: str) -> Offer | None:
        """Return what is offered under a name; None: nothing is. The core's comes first."""
        if place := self.core.get(kind, {}).get(name):
            return Offer(CORE, place, kind)
        return self.list_added(kind).get(name)

    def list_added(self, kind: OfferKind) -> dict[str, Offer]:
        """Return what the installed plugins add to the core, by name."""
        return {
            name: Offer(plugin.name, place, kind)
            for plugin in self.installed
            for name, place in plugin.offers.get(kind, {}).items()
        }

    def find_failure(self, package: str) -> PluginFailed | None:
        """Return the error that says why a plugin of an installed package is left out; None: none is."""
        for each in self.installed:
            if each.package == package and each.failure:
                return PluginFailed(plugin=each.name, reason=f"it is installed, and failed to load: {each.failure}")
        return None

    def _load(self, entry: EntryPoint, taken: Iterable[Mapping[OfferKind, OfferedPlaces]]) -> Plugin:
        package, version = (entry.dist.name, entry.dist.version) if entry.dist else ("", "")
        try:
            self._manager.register(entry.load(), entry.name)
            self._manager.check_pending()
            offers = self._read_offers(entry.name)
            self._refuse_reserved(offers, package)
            _refuse_taken(offers, taken)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a plugin raises, the others are loaded
            if self._manager.has_plugin(entry.name) and entry.name != CORE:
                self._manager.unregister(name=entry.name)
            failure = describe_error(error)
            _logger.warning("The plugin %s is left out: %s", entry.name, failure)
            return Plugin(entry.name, package, version, failure=failure)
        return Plugin(entry.name, package, version, offers)

    def _refuse_reserved(self, offers: Mapping[OfferKind, OfferedPlaces], package: str) -> None:
        """Raise ValueError for a name that means something without an offer: see `core_plugin.is_reserved`."""
        for kind, places in offers.items():
            _refuse_names(kind, [name for name in places if self._core.is_reserved(kind, name, package)])

    def _read_offers(self, plugin: str) -> dict[OfferKind, OfferedPlaces]:
        """Return what a registered plugin offers. Raises ValueError: it is no dictionary of names and places."""
        offers: dict[OfferKind, OfferedPlaces] = {}
        for kind in get_args(OfferKind):
            hook = getattr(self._manager.hook, f"offer_{kind}")
            for implementation in hook.get_hookimpls():
                if implementation.plugin_name == plugin:
                    offers[kind] = _validate_places(kind, implementation.function())
        return offers


@cache
def plugins() -> Plugins:
    """Return the plugins of this process."""
    return Plugins()


def describe_error(error: BaseException) -> str:
    """Return the reason that an error of a plugin's code gives, as a sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ").rstrip(".") + "."


def expect_fields(made: object, needed: FieldTypes) -> None:
    """Raise TypeError for an attribute that is missing or of another type than is `needed`: nothing checks the types of
    a plugin's code."""
    for name, kind in needed.items():
        if not hasattr(made, name):
            raise TypeError(f"{type(made).__name__} has no `{name}`: add it")
        value = getattr(made, name)
        if not isinstance(value, kind):
            wanted = getattr(kind, "__name__", str(kind))
            raise TypeError(f"{type(made).__name__}.{name} is of the type {type(value).__name__}: it must be {wanted}")


def fold_name(kind: OfferKind, name: str) -> str:
    """Return the form that two names have in common if they can be taken for one another. Of a model it is what is
    before the colon."""
    head = name.partition(":")[0] if kind == "models" else name
    return head.strip().lower().replace("-", "_")


def _import_place(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _validate_places(kind: OfferKind, places: object) -> OfferedPlaces:
    if not isinstance(places, Mapping):
        returned = type(places).__name__
        raise ValueError(f"offer_{kind} returned a {returned}, and must return a dictionary of names and places")
    pattern, words = _NAMES[kind]
    for name, place in places.items():
        if not isinstance(name, str) or not pattern.fullmatch(name):
            raise ValueError(f"offer_{kind} has the name {name!r}, which cannot be asked for: a name is {words}")
        if not isinstance(place, str) or not _PLACE.fullmatch(place):
            raise ValueError(f"{name} has the place {place!r}, which is not module:attribute")
    return dict(places)


def _refuse_taken(
    offers: Mapping[OfferKind, OfferedPlaces], taken: Iterable[Mapping[OfferKind, OfferedPlaces]]
) -> None:
    """Raise ValueError for a name that another plugin or the core offers, or that can be taken for such a name."""
    for other in taken:
        for kind, places in offers.items():
            known = {fold_name(kind, name) for name in other.get(kind, {})}
            _refuse_names(kind, [name for name in places if fold_name(kind, name) in known])


def _refuse_names(kind: OfferKind, names: list[str]) -> None:
    if names:
        raise ValueError(f"the {kind} {', '.join(sorted(names))} are offered already: give them other names")
