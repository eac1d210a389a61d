"""Errors of the catalog."""

from __future__ import annotations

from collections.abc import Sequence

from longthread.errors.base import LongthreadError
from longthread.errors.input import InvalidInput


class CatalogInvalid(InvalidInput):
    message = "Nothing was changed, for this is not right: {problems}"
    problems: Sequence[str]

    def _text(self) -> str:
        problems = [" ".join(str(problem).split()) for problem in self.problems]
        listed = problems[0] if len(problems) == 1 else "".join(f"\n  {problem}" for problem in problems)
        return self.message.format(problems=listed)


class DefinitionNotFound(LongthreadError, exit_code=2):
    message = "There is no {kind} {name}. {nearest}"
    kind: str
    name: str
    nearest: str


class DefinitionAmbiguous(InvalidInput):
    message = "Several {kind}s are called {name}. Give the id of the one that is meant: {ids}."
    kind: str
    name: str
    ids: str


class VersionNotFound(LongthreadError, exit_code=2):
    message = "The {kind} {name} has no version {version}. {versions}"
    kind: str
    name: str
    version: int
    versions: str


class AgentOff(InvalidInput):
    message = "The agent {name} is switched off. `is_active: true` in its definition, applied, switches it on."
    name: str


class AgentOfThread(InvalidInput):
    message = "The conversation {thread} is the agent {name}'s. Ask it there, or begin another conversation."
    thread: str
    name: str


class DefinitionBuiltIn(InvalidInput):
    message = "The {kind} {name} is built in and stays. What you define goes under another name."
    kind: str
    name: str


class ToolOnCommandLine(LongthreadError, exit_code=2):
    message = """The tool {tool} {power}, with the rights of the server's user. Define it where the server runs, with
    `longthread apply`. All but its implementation can then be changed here."""
    tool: str
    power: str


class DefinitionInUse(LongthreadError, exit_code=4):
    message = "The {kind} {name} is used by {users}. {remedy}"
    kind: str
    name: str
    users: str
    remedy: str
