"""Plugins are found, named where they fail, and never in the way of the rest."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from longthread.cli.app import app
from longthread.cli.language import OPTION, choose, translate
from longthread.errors import (
    CatalogInvalid,
    ExtraMissing,
    LongthreadError,
    ModelNotUsable,
    PluginFailed,
    ToolInvalid,
    ToolOnCommandLine,
)
from longthread.llm.embedders import embedder_of
from longthread.llm.models import resolve_model
from longthread.plugins import OfferKind, Plugins, plugins
from longthread.runs.services.sources import Sources
from longthread.server.app import create_app
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.tools.analysis.address import normalize_spec
from longthread.tools.analysis.dialects.dialect import find_dialect, list_sources
from longthread.tools.analysis.isolation.forkserver import FORK_SERVER
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.catalog.address import normalize_address
from longthread.tools.catalog.definitions import Catalog, power_of
from longthread.tools.catalog.documents import DefinitionDocument
from longthread.tools.catalog.drafts import draft_of
from longthread.tools.tool_type import find_type
from longthread.tools.trial import open_trial

ROOT = Path(__file__).parents[1]
HOOK = "from longthread.plugins import hookimpl\n@hookimpl\ndef {}():\n    return {!r}\n"
TAKEN = "ValueError: the {} {} are offered already: give them other names."
TAKEN_NAMES = [
    *(("models", name) for name in ("openai", "openai:gpt-4o", "OpenAI", "own:x", "azure-openai:x", "demo")),
    *(("models", name) for name in ("claude-sonnet-4-5", "Claude-x", "gpt-9", "o3-mini", "gemini-4:x")),
    *(("embedders", name) for name in ("openai", "local", "google_genai", "deepseek")),
    *(("commands", name) for name in ("hello", "ask", "Ask", "eval")),
    *(("tool_types", name) for name in ("api", "API", "builtin")),
    *(("engines", "postgres"), ("sources", "demo")),
]
NO_NAMES: list[tuple[str, Any]] = [
    *(("commands", name) for name in (None, 1, "", "--help", "ask ")),
    *(("models", name) for name in (None, "", " parrot")),
    *(("embedders", name) for name in ("my-models", "a:b")),
    *(("engines", name) for name in ("Parrots", "p+q")),
    *(("sources", name) for name in ("shop.sqlite", "a/b", "", " a", 7)),
    *(("tool_types", name) for name in ("", b"dice", "a b")),
]
WHOLE = HOOK.format("offer_commands", {"hello": "whole:hello"}) + "def hello(): print('Hello.')\n"


def install(folder: Path, name: str, code: str, version: str = "1.0") -> None:
    """Put a package of one module into a folder, as pip does."""
    (folder / f"{name}.py").write_text(code)
    about = folder / f"longthread_{name}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: longthread-{name}\nVersion: {version}\n")
    (about / "entry_points.txt").write_text(f"[longthread]\n{name} = {name}\n")


def longthread(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with the packages of a folder."""
    code = f"import sys; sys.argv = ['longthread', *{arguments!r}]; from longthread.cli.start import main; main()"
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "200", "LONGTHREAD_DATA_DIR": str(folder / "data")}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, timeout=240)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'."),
        (HOOK.format("offer_comands", {}), "PluginValidationError: unknown hook 'offer_comands' in plugin"),
        (HOOK.format("offer_models", {"a": "b"}), "ValueError: a has the place 'b', which is not module:attribute."),
        (HOOK.format("offer_models", {"a": None}), "ValueError: a has the place None, which is not module:attribute."),
        *((HOOK.format(f"offer_{kind}", {name: "m:f"}), TAKEN.format(kind, name)) for kind, name in TAKEN_NAMES),
        *((HOOK.format(f"offer_{kind}", {name: "m:f"}), f"{name!r}, which cannot be") for kind, name in NO_NAMES),
        (HOOK.format("offer_models", None), "ValueError: offer_models returned a NoneType, and must return a dictiona"),
        (HOOK.format("offer_models", ["a:b"]), "ValueError: offer_models returned a list, and must return a dictiona"),
        ("import sys\nsys.exit('Install acme.')\n", "SystemExit: Install acme."),
        (HOOK.format("offer_models", {}).replace("return {}", "raise SystemExit(3)"), "SystemExit: 3."),
    ],
)
def test_a_plugin_that_fails_is_named_and_the_others_work(
    code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path, "whole", WHOLE)
    install(tmp_path, "worse", code)
    monkeypatch.syspath_prepend(tmp_path)
    found = Plugins()
    offer = found.find("commands", "hello")
    assert offer is not None
    assert (offer.plugin, offer.place) == ("whole", "whole:hello")
    left_out = next(each for each in found.installed if each.name == "worse")
    assert reason in left_out.failure
    assert (left_out.package, left_out.version, left_out.offers) == ("longthread-worse", "1.0", {})
    assert f"The plugin worse is left out: {left_out.failure}" in caplog.messages
    choose([OPTION, "zh"])
    if left_out.failure.startswith("ValueError"):
        assert not re.search("[a-z]{2,} [a-z]{2,}", translate(left_out.failure))
    choose([OPTION, "en"])
    for name in ("whole", "worse"):
        sys.modules.pop(name, None)


def test_an_interrupt_is_not_taken_for_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "worse", "raise KeyboardInterrupt\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        _ = Plugins().installed


def test_two_plugins_cannot_offer_models_of_one_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "one", HOOK.format("offer_models", {"parrot": "one:make"}))
    install(tmp_path, "two", HOOK.format("offer_models", {"Parrot:grey": "two:make"}))
    monkeypatch.syspath_prepend(tmp_path)
    failures = {each.name: each.failure for each in Plugins().installed}
    assert (failures["one"], failures["two"]) == ("", TAKEN.format("models", "Parrot:grey"))
    for name in ("one", "two"):
        sys.modules.pop(name)


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("commands", "5", "is of the type int, and offer_commands needs a function: correct its place."),
        ("models", "None", "is of the type NoneType, and offer_models needs a function: correct its place."),
        ("embedders", "'x'", "is of the type str, and offer_embedders needs a function: correct its place."),
        ("sources", "()", "is of the type tuple, and offer_sources needs a function: correct its place."),
        ("engines", "dict", "is of the type type, and offer_engines needs SqlDialect: correct its place."),
        ("tool_types", "5", "is of the type int, and offer_tool_types needs ToolType: correct its place."),
        ("models", "__import__('sys').exit('Install acme.')", "SystemExit: Install acme."),
    ],
)
def test_a_place_that_holds_something_else_is_an_error_of_its_plugin(
    kind: OfferKind, value: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "odd", HOOK.format(f"offer_{kind}", {"odd": "oddity:THING"}))
    (tmp_path / "oddity.py").write_text(f"THING = {value}\n")
    monkeypatch.syspath_prepend(tmp_path)
    offer = Plugins().find(kind, "odd")
    assert offer is not None
    with pytest.raises(PluginFailed, match=r"^The plugin odd cannot be used: ") as caught:
        offer.load()
    assert reason in str(caught.value)
    choose([OPTION, "zh"])
    assert "correct its place" not in translate(str(caught.value))
    choose([OPTION, "en"])
    for name in ("odd", "oddity"):
        sys.modules.pop(name, None)


def test_a_place_that_cannot_be_imported_is_an_error_of_its_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "lost", HOOK.format("offer_models", {"lost": "no_such_module:model"}))
    monkeypatch.syspath_prepend(tmp_path)
    offer = Plugins().find("models", "lost")
    assert offer is not None
    with pytest.raises(PluginFailed, match="The plugin lost cannot be used: ModuleNotFoundError: No module named"):
        offer.load()


@pytest.mark.parametrize(
    ("module", "resolve", "raised"),
    [
        ("models", lambda name: resolve_model(name, Settings()), "ModelUnavailable(model"),
        ("embedders", lambda name: embedder_of(Settings(), name), "EmbedderUnavailable(embedder"),
    ],
)
def test_a_factory_may_say_itself_that_its_model_or_embedder_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, resolve: Callable[[str], Any], raised: str
) -> None:
    factory = f"    from longthread import errors\n    raise errors.{raised}=name, reason='Not today.')\n"
    code = HOOK.format(f"offer_{module}", {"rare": "rare:make"}) + f"def make(name, settings):\n{factory}"
    install(tmp_path, "rare", code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(f"longthread.llm.{module}.plugins", Plugins)
    with pytest.raises(LongthreadError, match=r"^The \w+ rare:one cannot be used: Not today\. (Or use|Check)"):
        resolve("rare:one")
    sys.modules.pop("rare")


@pytest.mark.parametrize(
    ("module", "resolve", "made", "said"),
    [
        ("models", lambda name: resolve_model(name, Settings()), "{}", "dict has no `name`: add it."),
        (
            "models",
            lambda name: resolve_model(name, Settings()),
            "Rare(window='32k')",
            "Rare.window is of the type str",
        ),
        (
            "models",
            lambda name: resolve_model(name, Settings()),
            "Rare(stream=None)",
            "Rare.stream is of the type NoneT",
        ),
        ("embedders", lambda name: embedder_of(Settings(), name), "None", "NoneType has no `name`: add it."),
        (
            "embedders",
            lambda name: embedder_of(Settings(), name),
            "Rare(name=5)",
            "Rare.name is of the type int: it must",
        ),
        ("embedders", lambda name: embedder_of(Settings(), name), "Rare()", "Rare has no `documents`: add it."),
    ],
)
def test_a_factory_that_makes_something_else_is_an_error_of_its_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, resolve: Callable[[str], Any], made: str, said: str
) -> None:
    code = HOOK.format(f"offer_{module}", {"rare": "rare:make"}) + f"def make(name, settings):\n    return {made}\n"
    code += "class Rare:\n    name, address, window, tool_calling, max_tokens = 'r', '', None, None, None\n"
    code += "    stream = close = print\n    def __init__(self, **given): vars(self).update(given)\n"
    install(tmp_path, "rare", code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(f"longthread.llm.{module}.plugins", Plugins)
    with pytest.raises(LongthreadError, match="cannot be used: The plugin rare cannot be used: TypeError: ") as caught:
        resolve("rare:one")
    assert said in str(caught.value)
    choose([OPTION, "zh"])
    assert not re.search("it must|add it", translate(str(caught.value)))
    choose([OPTION, "en"])
    sys.modules.pop("rare")


def test_a_name_of_the_core_looks_for_no_plugins() -> None:
    found = Plugins(lambda: pytest.fail("looked for plugins"))
    assert found.find("commands", "ask") is not None
    assert found.find("models", "openai") is not None
    assert found.find("embedders", "local") is not None


def test_the_core_offers_places_that_exist() -> None:
    found = Plugins(list)
    for kind, places in found.core.items():
        for name in places:
            offer = found.find(kind, name)
            assert offer is not None
            assert offer.load() is not None, name


def test_commands_are_listed_and_run_although_others_fail(tmp_path: Path) -> None:
    install(tmp_path, "whole", WHOLE)
    install(tmp_path, "worse", "raise RuntimeError('It is broken.')\n")
    install(tmp_path, "lost", HOOK.format("offer_commands", {"lost": "no_such_module:command"}))
    install(tmp_path, "left", "import sys\nsys.exit('Install acme.')\n")
    odd = HOOK.format("offer_commands", {"five": "odd:FIVE", "odd": "odd:ask"})
    install(tmp_path, "odd", odd + "FIVE = 5\nask = min\n")
    shown = longthread(tmp_path, "--help")
    assert re.search(r"^│ plugins .*\n│ eval .*\n│ hello ", shown.stdout, re.MULTILINE)
    assert "The plugin worse is left out: RuntimeError: It is broken." in shown.stderr
    assert "The plugin lost cannot be used: ModuleNotFoundError" in shown.stderr
    assert "The plugin left is left out: SystemExit: Install acme." in shown.stderr
    assert "The plugin odd cannot be used: odd:FIVE is of the type int" in shown.stderr
    assert "The plugin odd cannot be used: ValueError: no signature found" in shown.stderr
    assert longthread(tmp_path, "hello").stdout == "Hello.\n"
    unknown = longthread(tmp_path, "lost")
    assert (unknown.returncode, "The plugin lost cannot be used" in unknown.stderr) == (1, True)
    listed = longthread(tmp_path, "plugins", "list", "--json")
    rows = {row["plugin"]: row for row in map(json.loads, listed.stdout.splitlines())}
    assert next(iter(rows)) == "longthread"
    assert rows["whole"]["offers"] == {"commands": ["hello"]}
    assert rows["worse"]["failure"] == "RuntimeError: It is broken."
    assert "left out: RuntimeError: It is broken." in longthread(tmp_path, "plugins", "list").stdout


def test_the_plugin_of_the_guide_works(tmp_path: Path) -> None:
    blocks = dict(
        re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "docs/how-to/plugins.md").read_text("utf-8"), re.S | re.M)
    )
    project = tomllib.loads(blocks["toml"])["project"]
    assert project["entry-points"] == {"longthread": {"parrot": "longthread_parrot"}}
    install(tmp_path, "longthread_parrot", blocks["python"], project["version"])
    with sqlite3.connect(tmp_path / "shop.sqlite") as connection:
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    assert longthread(tmp_path, "shout", "hello").stdout == "HELLO\n"
    asked = longthread(tmp_path, "ask", "Hello", "--model", "parrot:grey", "--source", "shop.sqlite")
    assert "You said: " in asked.stdout, asked.stderr


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A plugin offers the source `parrots`. Commands run in the folder `here`."""
    code = HOOK.format("offer_sources", {"parrots": "birds:find"})
    code += f"def find():\n    from pathlib import Path\n    return 'Birds', Path({str(tmp_path)!r}, 'b.sqlite')\n"
    install(tmp_path, "birds", code)
    create_table(tmp_path / "b.sqlite", "parrots")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    yield
    plugins.cache_clear()
    sys.modules.pop("birds", None)


def create_table(path: Path, name: str) -> None:
    """Create a database file with an empty table."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {name} (name TEXT)")


async def list_tables(source: Source) -> list[str]:
    """Return the names of a source's tables, and close it."""
    async with source:
        return [*(await source.schema()).tables]


@pytest.mark.usefixtures("birds")
async def test_a_source_is_asked_by_its_name() -> None:
    source = await open_source("parrots")
    assert (source.spec, source.name, await list_tables(source)) == ("parrots", "Birds", ["parrots"])
    assert (normalize_spec("parrots"), normalize_address("parrots")) == ("parrots", "parrots")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("return 'Birds', {!r}", None),
        ("return {!r}", "its source parrots gives no title and path of a database file. ValueError: too many values"),
        ("return 'Birds', None", "its source parrots gives no title and path of a database file. TypeError: "),
        ("raise SystemExit('No birds')", "gives no title and path of a database file. SystemExit: No birds."),
        ("return 'Birds', {!r} + 'x'", "b.sqlitex, where no file is."),
    ],
)
@pytest.mark.usefixtures("birds")
async def test_a_source_gives_a_title_and_the_path_of_a_file(code: str, said: str | None, tmp_path: Path) -> None:
    text = HOOK.format("offer_sources", {"parrots": "birds:find"})
    (tmp_path / "birds.py").write_text(f"{text}def find():\n    {code.format(str(tmp_path / 'b.sqlite'))}\n")
    if said is None:
        source = await open_source("parrots")
        assert (source.name, await list_tables(source)) == ("Birds", ["parrots"])
        return
    with pytest.raises(PluginFailed, match="^The plugin birds cannot be used: its source parrots ") as caught:
        await open_source("parrots")
    assert said in str(caught.value)
    choose([OPTION, "zh"])
    assert "它的数据源 parrots" in translate(str(caught.value))
    choose([OPTION, "en"])


@pytest.mark.usefixtures("birds")
async def test_a_file_comes_before_a_plugins_source_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "here/parrots"
    create_table(path, "own_birds")
    source = await open_source("parrots")
    assert (source.spec, await list_tables(source)) == (str(path), ["own_birds"])
    assert normalize_spec("parrots") == normalize_address("parrots") == str(path)
    assert normalize_address("parrots", tmp_path) == "parrots"


@pytest.mark.usefixtures("birds")
async def test_a_definition_comes_before_a_plugins_source_of_its_name(tmp_path: Path, store: Driver) -> None:
    sources = Sources(store, Settings.of(data_dir=tmp_path, source="parrots"))
    assert await list_tables(await sources.open("parrots", None, user_id="ada")) == ["parrots"]
    create_table(tmp_path / "own.sqlite", "own_birds")
    await Catalog(store).add_source({"kind": "source", "name": "parrots", "address": str(tmp_path / "own.sqlite")})
    for given in ("parrots", None):
        assert await list_tables(await sources.open(given, None, user_id="ada")) == ["own_birds"]
    assert await list_tables(await sources.open_again("parrots", user_id="ada")) == ["parrots"]  # a thread's
    await sources.close()


@pytest.mark.usefixtures("birds")
async def test_terms_are_added_to_a_plugins_source_by_its_name(store: Driver) -> None:
    change = await Catalog(store).teach("parrots", {"terms": [{"name": "talker", "meaning": "It talks."}]})
    assert (change.definition.name, change.definition.body["address"]) == ("parrots", "parrots")


ENGINE = """
from pathlib import Path
from longthread.tools.analysis.dialects.sqlite import DIALECT as SQLITE
from longthread.tools.analysis.engines.sqlite import SqliteEngine

class Parrots(type(SQLITE)):
    name, is_file = "parrots", False

    def open_server(self, url, source, limits):
        return SqliteEngine(Path(__file__).with_name(f"{url.database}.sqlite"), source, limits)

DIALECT = Parrots()
"""


async def test_a_server_is_opened_by_its_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "aviary", HOOK.format("offer_engines", {"parrots": "aviary:DIALECT"}) + ENGINE)
    with sqlite3.connect(tmp_path / "b.sqlite") as connection:
        connection.execute("CREATE TABLE parrots (name TEXT)")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    source = await open_source("parrots://aviary/b")
    tables = [*(await source.schema()).tables]
    await source.close()
    assert (source.spec, tables) == ("parrots://aviary/b", ["parrots"])
    assert (find_dialect("parrots").functions, list_sources()[-1]) == (find_dialect("sqlite").functions, "parrots")
    plugins.cache_clear()


def test_a_type_of_tools_is_defined_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = HOOK.format("offer_tool_types", {"dice": "rolling:TYPE"})
    code += "from longthread.errors import ToolInvalid\nfrom longthread.tools.tool_type import Bilingual, ToolType\n"
    code += "def check(implementation, parameters):\n    if 'sides' not in implementation:\n"
    code += "        raise ToolInvalid(problem='it has no sides.')\n"
    code += "TYPE = ToolType(Bilingual('Dice', '骰子'), check, print)\n"
    install(tmp_path, "rolling", code)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    problems: list[str] = []
    data = {"name": "roll", "type": "dice", "schema": {}, "implementation": {}}
    draft = draft_of(DefinitionDocument("tool", data, ""), problems)
    assert (draft.body["type"], problems) == ("dice", ["tool roll, implementation: it has no sides."])
    draft_of(DefinitionDocument("tool", data | {"type": "card"}, ""), problems)
    known = ", ".join([*plugins().core["tool_types"], "dice"])
    assert problems[-1] == f"tool roll, type: it must be one of {known}, and is card."
    plugins.cache_clear()
    sys.modules.pop("rolling")


@pytest.mark.parametrize(
    ("more", "power"),
    [
        ("", "code"),
        (", power=lambda _: None", "code"),
        (", about=ABOUT", None),
        (", about=ABOUT, power=lambda _: 'program'", "program"),
        (", about=ABOUT, power=lambda given: given['sides']", "code"),
        (", about=ABOUT, power=lambda _: 'all'", "code"),
        (", about=ABOUT, power=lambda _: {}", "code"),
    ],
)
async def test_a_type_of_tools_that_says_nothing_of_itself_is_defined_on_the_command_line(
    more: str, power: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Driver
) -> None:
    code = HOOK.format("offer_tool_types", {"dice": "rolling:TYPE"})
    code += "from longthread.tools.tool_type import Bilingual, ToolType\nABOUT = Bilingual('Rolls.', '掷。')\n"
    code += f"TYPE = ToolType(Bilingual('Dice', '骰子'), lambda *_: None, print{more})\n"
    install(tmp_path, "rolling", code)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    tool = {"kind": "tool", "name": "roll", "type": "dice", "schema": {"name": "roll"}, "implementation": {}}
    assert power_of(tool) == power
    with pytest.raises(ToolOnCommandLine) if power else nullcontext():
        await Catalog(store).define_over_http(tool)
    await Catalog(store).apply([tool])
    with pytest.raises(ToolOnCommandLine) if power else nullcontext():
        await Catalog(store).define_over_http(tool | {"implementation": {"more": 1}})
    await Catalog(store).define_over_http(tool | {"is_active": False})
    plugins.cache_clear()
    sys.modules.pop("rolling")


async def test_a_type_of_tools_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Driver
) -> None:
    code = HOOK.format("offer_tool_types", {"dice": "rolling:TYPE", "card": "rolling:CARD", "coin": "rolling:COIN"})
    code += "from longthread.tools.tool_type import Bilingual, ToolType\nCOIN = 5\n"
    code += "async def build(*_): return [1]\n"
    code += "TYPE = ToolType(Bilingual('Dice', '骰子'), lambda *_: None, build)\n"
    code += "CARD = ToolType(Bilingual('Card', '牌'), lambda *_: 1 / 0, build)\n"
    install(tmp_path, "rolling", code)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    assert (find_type("coin"), find_type("dice") is not None) == (None, True)
    tool = {"kind": "tool", "name": "roll", "type": "card", "schema": {"name": "roll"}, "implementation": {}}
    with pytest.raises(CatalogInvalid, match="its type card cannot check it: ZeroDivisionError: division by zero"):
        await Catalog(store).apply([tool])
    await Catalog(store).apply([tool | {"type": "dice"}])
    with pytest.raises(ToolInvalid, match="its type dice cannot build it: TypeError: ") as caught:
        async with open_trial(store, Settings.of(data_dir=tmp_path), "roll"):
            pass
    choose([OPTION, "zh"])
    assert "它的类型 dice 无法构建它：TypeError" in translate(str(caught.value))
    choose([OPTION, "en"])
    plugins.cache_clear()
    sys.modules.pop("rolling")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("title='Dice'", "TypeError: ToolType.title is of the type str: it must be Bilingual."),
        ("title=Bilingual('Dice', 5)", "TypeError: Bilingual.zh is of the type int: it must be str."),
        ("build=None", "TypeError: ToolType.build is of the type NoneType: it must be Callable."),
        ("about='Rolls.'", "TypeError: ToolType.about is of the type str: it must be "),
        ("category=5", "TypeError: ToolType.category is of the type int: it must be str."),
        ("serves_tools='no'", "TypeError: ToolType.serves_tools is of the type str: it must be bool."),
        ("fields=[]", "TypeError: ToolType.fields is of the type list: it must be tuple."),
        ("fields=('sides',)", "TypeError: a field of its form is of the type str: it must be FormField."),
        ("fields=(FormField('sides', 'text', 'Sides'),)", "TypeError: FormField.title is of the type str: it must be "),
        (
            "fields=(FormField('sides', 'number', NAME),)",
            "ValueError: a field has the input number: it must be one of ",
        ),
        (
            "fields=(FormField('sides', 'choice', NAME, options=(6,)),)",
            "TypeError: an option of a field is of the type int: ",
        ),
    ],
)
def test_a_type_of_tools_with_a_field_of_another_type_is_named_and_left_out(
    wrong: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    code = "from longthread.tools.tool_type import Bilingual, FormField, ToolType\nNAME = Bilingual('Dice', '骰子')\n"
    code += f"TYPE = ToolType(**({{'title': NAME, 'check': print, 'build': print}} | dict({wrong})))\n"
    install(tmp_path, "rolling", HOOK.format("offer_tool_types", {"dice": "dicing:TYPE"}))
    (tmp_path / "dicing.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    app = create_app(Settings.of(data_dir=tmp_path))
    with TestClient(app, base_url="http://127.0.0.1:8765", client=("127.0.0.1", 5)) as client:
        answer = client.get("/api/catalog/tools")
    assert answer.status_code == 200
    assert [each["name"] for each in answer.json()["types"]] == [*plugins().core["tool_types"]]
    assert f"Tools of type dice cannot be used. The plugin rolling cannot be used: {said}" in caplog.text
    choose([OPTION, "zh"])
    assert "it must be" not in translate(said if said.endswith(".") else f"{said.rstrip()} x.")
    choose([OPTION, "en"])
    plugins.cache_clear()
    for name in ("rolling", "dicing"):
        sys.modules.pop(name, None)


@pytest.fixture
def without_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No package with a plugin is installed."""
    monkeypatch.setattr("longthread.plugins.entry_points", lambda group: [])
    plugins.cache_clear()
    yield
    plugins.cache_clear()


@pytest.mark.usefixtures("without_plugins")
async def test_without_its_package_the_demo_says_how_to_install_it(tmp_path: Path) -> None:
    command = "pip install -e packages/longthread-demo"
    settings = Settings.of(data_dir=tmp_path)
    with pytest.raises(
        ModelNotUsable, match=f"The model demo cannot be used: Its package is not installed: `{command}`"
    ):
        resolve_model(None, settings)
    with pytest.raises(ExtraMissing, match=f"The demo needs the Python package longthread-demo.*: {command}"):
        await open_source("demo")
    ended = CliRunner().invoke(app, ["demo"])
    assert isinstance(ended.exception, ExtraMissing)
    assert CliRunner().invoke(app, ["ask", "--help"]).exit_code == 0
    assert resolve_model("openai:gpt-4o", Settings.of(data_dir=tmp_path, openai_api_key="k")).name == "gpt-4o"


@pytest.fixture
def broken_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The packages of the demo and of `longthread eval` are installed, and cannot be imported."""
    for name, package in (("broken_demo", "demo"), ("broken_evals", "evals")):
        install(tmp_path, name, "import no_such_module\n")
        about = tmp_path / f"longthread_{name}-1.0.dist-info" / "METADATA"
        about.write_text(about.read_text().replace(f"longthread-{name}", f"longthread-{package}"))
    found = list(distributions(path=[str(tmp_path)]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        "longthread.plugins.entry_points", lambda group: [each for one in found for each in one.entry_points]
    )
    plugins.cache_clear()
    yield
    plugins.cache_clear()


@pytest.mark.usefixtures("broken_demo")
async def test_a_demo_that_fails_to_load_says_why_and_not_that_it_is_missing(tmp_path: Path) -> None:
    reason = "it is installed, and failed to load: ModuleNotFoundError: No module named 'no_such_module'."
    failure = f"The plugin broken_demo cannot be used: {reason}"
    with pytest.raises(ModelNotUsable, match=f"The model demo cannot be used: {failure}"):
        resolve_model(None, Settings.of(data_dir=tmp_path))
    with pytest.raises(PluginFailed, match=failure):
        await open_source("demo")
    demo = CliRunner().invoke(app, ["demo"])
    assert str(demo.exception).startswith(failure)
    measured = CliRunner().invoke(app, ["eval", "recall", "x.jsonl"])
    assert str(measured.exception).startswith(failure.replace("broken_demo", "broken_evals"))
    choose([OPTION, "zh"])
    assert translate(str(demo.exception)).startswith(
        "插件 broken_demo 无法使用：已安装，但加载失败：ModuleNotFoundError"
    )
    choose([OPTION, "en"])


def test_the_demo_is_an_installed_plugin() -> None:
    rows = {each.name: each for each in plugins().installed}
    assert rows["demo"].package == "longthread-demo"
    assert rows["demo"].offers == {
        "models": {"demo": "longthread_demo.chat:demo_model"},
        "sources": {"demo": "longthread_demo.spaceflight:demo_source"},
    }


@pytest.mark.parametrize(
    ("is_file", "method", "place"), [(False, "open_server", "on a server"), (True, "load_file_engine", "in files")]
)
@pytest.mark.parametrize("isolated", [False, True])
async def test_an_engine_that_opens_nothing_names_its_plugin(
    is_file: bool, method: str, place: str, isolated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = HOOK.format("offer_engines", {"bare": "birdcage:DIALECT"})
    code += "from longthread.tools.analysis.dialects.dialect import SqlDialect\n"
    code += f"class Bare(SqlDialect):\n    name, is_file = 'bare', {is_file}\nDIALECT = Bare()\n"
    install(tmp_path, "birdcage", code)
    (tmp_path / "b.bare").write_text("x" * 100)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    said = f"The plugin birdcage cannot be used: its engine bare opens no databases {place}. .* `{method}`"
    with pytest.raises(PluginFailed, match=said) as caught:
        await open_source(f"bare:///{tmp_path}/b.bare", limits=Limits(isolated=isolated))
    choose([OPTION, "zh"])
    assert f"它的类 Bare 需要方法 `{method}`" in translate(str(caught.value))
    choose([OPTION, "en"])
    plugins.cache_clear()
    sys.modules.pop("birdcage")


FILE_ENGINE = """
import sqlite3
from longthread.tools.analysis.dialects.sqlite import DIALECT as SQLITE
from longthread.tools.analysis.engines.sqlite import SqliteEngine

def open_script(path, source, limits):
    made = path.with_suffix(".made")
    if not made.exists():
        with sqlite3.connect(made) as connection:
            connection.executescript(path.read_text())
    return SqliteEngine(made, source, limits)

class Parrots(type(SQLITE)):
    name, is_file = "parrots", True

    def load_file_engine(self):
        return open_script

DIALECT = Parrots()
"""


@pytest.mark.parametrize("isolated", [False, True])
async def test_a_file_of_a_plugins_engine_is_opened(
    isolated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "birdhouse", HOOK.format("offer_engines", {"parrots": "birdhouse:DIALECT"}) + FILE_ENGINE)
    (tmp_path / "b.parrots").write_text("CREATE TABLE parrots (name TEXT); INSERT INTO parrots VALUES ('Kea');")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    FORK_SERVER.close()  # the next one finds the plugin
    limits = Limits(isolated=isolated)
    async with await open_source(f"parrots:///{tmp_path}/b.parrots", limits=limits) as source:
        assert [*(await source.schema()).tables] == ["parrots"]
        found = await source.work(lambda connection: connection.query("SELECT name FROM parrots").first())
    assert found == ("Kea",)
    plugins.cache_clear()
    sys.modules.pop("birdhouse")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("return {}", "TypeError: dict is no Engine: open_server and load_file_engine must give one."),
        ("return self.opened(url, source, limits, name=5)", "TypeError: SqliteEngine.name is of the type int"),
        ("return self.opened(url, source, limits, dialect='bird')", "ValueError: Unknown dialect 'bird'"),
        ("return self.opened(url, source, limits, read_schema=lambda _: 7)", "TypeError: "),
        ("raise KeyError(url.password)", "KeyError: '***'."),
    ],
)
async def test_an_engine_that_gives_something_else_is_an_error_of_its_plugin(
    changed: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = HOOK.format("offer_engines", {"parrots": "cote:DIALECT"}) + ENGINE.replace("open_server", "opened")
    code = code.replace("limits):", "limits, **given):").replace("return SqliteEngine", "engine = SqliteEngine")
    opening = f"    def open_server(self, url, source, limits):\n        {changed}\n"
    code = code.replace(
        "\n\nDIALECT", f"\n        vars(engine).update(given)\n        return engine\n{opening}\nDIALECT"
    )
    install(tmp_path, "cote", code)
    create_table(tmp_path / "b.sqlite", "parrots")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    with pytest.raises(PluginFailed, match="^The plugin cote cannot be used: its engine parrots ") as caught:
        await open_source("parrots://ada:s3cret@aviary/b")
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)
    choose([OPTION, "zh"])
    assert "它的引擎 parrots 无法打开数据库" in translate(str(caught.value))
    choose([OPTION, "en"])
    plugins.cache_clear()
    sys.modules.pop("cote")
