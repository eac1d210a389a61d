"""A run loop in small: the demo model's brain, real tools, and small databases of many styles."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools
from longthread.tools.tool import Tool
from longthread_demo.brain import decide
from longthread_demo.talk import DemoCall, Utterance

SHARED = Path(__file__).parents[3] / "shared" / "data"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"demo_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


databases = _load("databases")
workplaces = _load("workplaces")
trades = _load("trades")
clubs = _load("clubs")

_MADE = (
    (databases, databases.NAMES),
    (workplaces, workplaces.NAMES),
    (trades, trades.SCHEMAS),
    (clubs, clubs.SCHEMAS),
)


@dataclass
class Conversation:
    """A thread with the demo model: `ask` runs one question to its answer."""

    tools: Mapping[str, Tool]
    system: str = ""
    messages: list[Utterance] = field(default_factory=list)
    actions: list[DemoCall] = field(default_factory=list)
    rows: list[list[Any]] | None = None
    model_calls: int = 0

    async def ask(self, question: str) -> str:
        self.messages.append(Utterance("user", question))
        self.actions, self.rows, self.model_calls = [], None, 0
        head = [Utterance("system", self.system)] if self.system else []
        while True:
            self.model_calls += 1
            assert self.model_calls <= 8, f"{question}: the model does not come to an end"
            decision = decide([*head, *self.messages])
            if not decision.calls:
                self.messages.append(Utterance("assistant", decision.answer))
                return decision.answer
            await self._act(decision.thought, decision.calls)

    async def _act(self, thought: str, calls: tuple[DemoCall, ...]) -> None:
        made = tuple(DemoCall(call.name, call.args, f"call-{len(self.messages)}-{at}") for at, call in enumerate(calls))
        self.messages.append(Utterance("assistant", thought, made))
        for call in made:
            self.actions.append(call)
            observation = await self.tools[call.name].call(call.args)
            if call.name == "run_sql" and observation["ok"]:
                self.rows = observation["data"]["rows"]
                observation["data"]["query"] = f"q{sum(action.name == 'run_sql' for action in self.actions)}"
            self.messages.append(Utterance("tool", json.dumps(observation, default=str), call_id=call.id))

    def names(self) -> list[str]:
        """The tools called for the last question."""
        return [call.name for call in self.actions]


Opener = Callable[[str], Awaitable[Source]]


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path | str]:
    """The path of a database by name; skips where one that is not generated is absent."""
    folder = tmp_path_factory.mktemp("demo-databases")

    def find(name: str) -> Path | str:
        if name == "demo":
            return "demo"
        for made, names in _MADE:
            if name in names:
                path = folder / f"{name}.sqlite"
                return path if path.exists() else Path(made.build(name, folder))
        shared = SHARED / name / f"{name}.sqlite"
        if not shared.exists():
            pytest.skip(f"{name} is not at {shared}: this part of the questions is not asked")
        return shared

    return find


@pytest.fixture
def converse() -> type[Conversation]:
    """Start a conversation over given tools."""
    return Conversation


@pytest.fixture
async def talk(database: Callable[[str], Path | str]) -> AsyncIterator[Callable[[str], Awaitable[Conversation]]]:
    """Start a conversation about a database."""
    opened: list[Source] = []

    async def start(name: str) -> Conversation:
        source = await open_source(str(database(name)))
        opened.append(source)
        return Conversation({tool.name: tool for tool in analysis_tools(source)})

    yield start
    for source in opened:
        await source.close()


@pytest.fixture
async def ask(
    tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Callable[[str], Awaitable[Conversation]]]:
    """Start a conversation about one of the small databases in the test module's `SCHEMAS`: SQL scripts by name."""
    opened: list[Source] = []

    async def start(name: str) -> Conversation:
        path = tmp_path / f"{name}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(request.module.SCHEMAS[name])
        source = await open_source(str(path))
        opened.append(source)
        return Conversation({tool.name: tool for tool in analysis_tools(source)})

    yield start
    for source in opened:
        await source.close()
